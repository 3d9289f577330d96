//! Tests of the configuration files and variables for git and ssh.
//! They are read by the real git and ssh.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use proptest::prelude::*;
use tagboat::git::{
    Access, AccessError, AccessOptions, AccessPlan, Configuration, Credentials, LocalPaths, Login,
    ProcessEnv, RemoteUrl,
};
use tagboat::net::{Pin, Proxy, Server};
use tagboat::secrets::{Secret, SecretData};

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

fn url(text: &str) -> RemoteUrl {
    RemoteUrl::parse(text, LocalPaths::Refused).unwrap()
}

fn data(items: &[(&str, &str)]) -> BTreeMap<String, Secret> {
    items.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect()
}

fn credentials(url: &RemoteUrl, items: &[(&str, &str)]) -> Credentials {
    let data = data(items);
    let secret = SecretData { name: "apps/login", data: &data };
    Credentials::generic(url, (!items.is_empty()).then_some(secret)).unwrap()
}

fn prepare(url: &RemoteUrl, items: &[(&str, &str)], options: &AccessOptions) -> Access {
    open(url, Login::Given(credentials(url, items)), options)
}

fn open(url: &RemoteUrl, login: Login, options: &AccessOptions) -> Access {
    AccessPlan::new(url, login, options.clone()).unwrap().open().unwrap()
}

fn process_env(variables: &[(&str, &Path)]) -> AccessOptions {
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    AccessOptions { process_env: ProcessEnv::new(variables), ..AccessOptions::default() }
}

fn variable(access: &Access, name: &str) -> Option<OsString> {
    let mut found = access.environment().iter().filter(|(known, _)| known == name);
    let value = found.next().map(|(_, value)| value.clone());
    assert!(found.next().is_none(), "{name} is set twice");
    value
}

fn configuration(access: &Access) -> PathBuf {
    variable(access, "GIT_CONFIG_GLOBAL").unwrap().into()
}

/// Runs a program in the environment of a git process: only PATH is inherited.
fn run(access: &Access, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("LC_ALL", "C");
    command.envs(access.environment().iter().cloned()).args(arguments).current_dir("/").output().unwrap()
}

/// The value of a setting that git reads for this URL.
fn setting(access: &Access, name: &str, url: &str) -> String {
    let output = run(access, "git", &["config", "--get-urlmatch", name, url]);
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn configuration_values_come_back_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let mut values: Vec<Vec<u8>> = [
        b"".as_slice(),
        b" ",
        b"a # b ; c",
        b"\"",
        b"\\",
        b"\\n",
        b"a\\\nb",
        b"\r\n",
        b"\tx\r",
        b"~/x",
        b"'",
        b"[x]\ny = z",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    values.push((1..=255).collect());
    values.extend((1..=255).map(|byte| vec![byte]));
    values.extend((1..=255).map(|byte| vec![b'a', byte, b'b']));
    let mut file = Configuration::new();
    for value in &values {
        file.set("http", Some("https://[::1]:8080"), "extraHeader", value);
    }
    fs::write(&path, file.as_bytes()).unwrap();
    let path = path.to_str().unwrap();
    let arguments = ["config", "-z", "-f", path, "--get-all", "http.https://[::1]:8080.extraHeader"];
    let output = Command::new("git").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Vec<&[u8]> = output.stdout.strip_suffix(b"\0").unwrap().split(|&byte| byte == 0).collect();
    assert_eq!(found, values);
}

#[test]
fn configuration_sections_come_back_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    for section in ["https://h", "a\"b\\c]#;= d", " é\t"] {
        let mut file = Configuration::new();
        file.set("http", Some(section), "proxy", "x");
        fs::write(&path, file.as_bytes()).unwrap();
        let name = format!("http.{section}.proxy");
        let output =
            Command::new("git").args(["config", "-f", path.to_str().unwrap(), &name]).output().unwrap();
        assert_eq!(output.stdout, b"x\n", "{section}");
    }
}

#[test]
fn files_are_private_and_removed_with_the_access() {
    let remote = url("https://h/x");
    let items = [
        ("username", "u"),
        ("password", "hunter2"),
        ("ca.crt", CERTIFICATE),
        ("tls.crt", CERTIFICATE),
        ("tls.key", "-----BEGIN PRIVATE KEY-----\nhunter2\n"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let roots = directory.path().join("roots.pem");
    fs::write(&roots, "# roots").unwrap();
    let access = prepare(&remote, &items, &process_env(&[("SSL_CERT_FILE", &roots)]));
    let written = ["http.sslCAInfo", "http.sslKey", "http.sslCert"];
    let mut written: Vec<PathBuf> = written.map(|name| setting(&access, name, "https://h/x").into()).to_vec();
    assert_eq!(fs::read_to_string(&written[0]).unwrap(), format!("# roots\n{CERTIFICATE}"));
    written.push(configuration(&access));
    let names = ["ca.crt", "client.key", "client.crt", "config"];
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let home = PathBuf::from(variable(&access, "HOME").unwrap());
    assert_eq!(mode(&home), 0o700);
    for (path, name) in written.iter().zip(names) {
        assert!(path.ends_with(name), "{}", path.display());
        assert_eq!((mode(path), mode(path.parent().unwrap())), (0o600, 0o700), "{name}");
        assert_eq!(access.redact(&format!("no {}", path.display())), format!("no {name}"));
    }
    drop(access);
    assert!(!home.exists() && written.iter().all(|path| !path.parent().unwrap().exists()));
}

/// Otherwise each plan would have a copy of the system's certificates.
#[test]
fn a_plan_has_no_files_and_equal_accesses_share_theirs() {
    let directory = tempfile::tempdir().unwrap();
    let roots = directory.path().join("roots.pem");
    let options = process_env(&[("SSL_CERT_FILE", &roots)]);
    let plan = |text: &str, password: &str| {
        let remote = url(text);
        let items = [("username", "u"), ("password", password), ("ca.crt", CERTIFICATE)];
        AccessPlan::new(&remote, Login::Given(credentials(&remote, &items)), options.clone()).unwrap()
    };
    // The system's certificates are not written yet, because no access needs them.
    let plans = [plan("https://h/x", "a"), plan("https://i/x", "b"), plan("https://i/x", "b")];
    fs::write(&roots, "# roots").unwrap();
    let accesses = plans.map(|plan| plan.open().unwrap());
    let bundles = accesses.each_ref().map(|access| setting(access, "http.sslCAInfo", "https://h/x"));
    assert!(bundles.iter().all(|bundle| *bundle == bundles[0]), "{bundles:?}");
    let [first, second, third] = accesses.each_ref().map(configuration);
    assert!(first != second && second == third);
    let [one, others @ ..] = accesses;
    drop(others);
    assert!(Path::new(&bundles[0]).exists() && first.exists() && !second.exists());
    drop(one);
    assert!(!Path::new(&bundles[0]).exists());
}

#[test]
fn a_login_is_for_its_own_server_alone() {
    for (text, items, header) in [
        (
            "https://H.example/a%20b//c",
            [("username", "u"), ("password", "p:\"#")],
            "Authorization: Basic dTpwOiIj",
        ),
        ("http://a:b@[::1]:8080/x", [("other", ""), ("another", "")], "Authorization: Basic YTpi"),
        (
            "https://my_host:444",
            [("bearerToken", "a\"b\\c;d#e\n"), ("other", "")],
            "Authorization: Bearer a\"b\\c;d#e",
        ),
    ] {
        let remote = url(text);
        let access = prepare(&remote, &items, &AccessOptions::default());
        assert_eq!(setting(&access, "http.extraHeader", &remote.to_string()), header, "{text}");
        for other in ["https://other/x", "http://h.example/x", "https://h.example:444/x", "http://[::1]/x"] {
            assert_eq!(setting(&access, "http.extraHeader", other), "", "{text} {other}");
        }
    }
}

/// Starts a server that answers with `answer`.
/// Returns its port and the request that it got.
fn serve(answer: &'static str) -> (u16, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let one = move |mut stream: TcpStream| {
        let mut asked = Vec::new();
        let mut buffer = [0; 4096];
        while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the request ended early");
            asked.extend_from_slice(&buffer[..count]);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(asked).unwrap()
    };
    (port, thread::spawn(move || one(listener.accept().unwrap().0)))
}

const REFUSAL: &str = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

#[test]
fn git_sends_the_login_with_the_first_request() {
    for (items, header) in [
        ([("username", "u"), ("password", "p ä")], "Authorization: Basic dTpwIMOk"),
        ([("bearerToken", "hunter2"), ("other", "")], "Authorization: Bearer hunter2"),
    ] {
        let (port, server) = serve(REFUSAL);
        let remote = url(&format!("http://127.0.0.1:{port}/a%7Eb//c.git"));
        let access = prepare(&remote, &items, &AccessOptions::default());
        let output = run(&access, "git", &["ls-remote", "--", remote.to_argument().to_str().unwrap()]);
        assert!(!output.status.success());
        let asked = server.join().unwrap();
        assert!(asked.starts_with("GET /a%7Eb//c.git/info/refs?service=git-upload-pack "), "{asked}");
        assert!(asked.contains(header), "{asked}");
    }
}

/// The owner was missing in each message about the repository.
#[test]
fn a_user_name_is_redacted_unless_the_path_of_the_url_shows_it() {
    for (address, user, expected) in [
        ("https://h/acme/fleet", "acme", "cannot read https://h/acme/fleet: ••••, acme"),
        ("https://acme@h/acme/fleet", "acme", "cannot read https://h/acme/fleet: ••••, acme"),
        ("https://h/acme/fleet", "robot", "cannot read https://h/acme/fleet: ••••, ••••"),
        // A part of a segment, or the host, is not enough.
        ("https://robot/robots/fleet", "robot", "cannot read https://••••/••••s/fleet: ••••, ••••"),
        ("https://h/acme/fleet", "ghp_0123456789abcdef", "cannot read https://h/acme/fleet: ••••, ••••"),
    ] {
        let remote = url(address);
        let access =
            prepare(&remote, &[("username", user), ("password", "hunter2")], &AccessOptions::default());
        let text = format!("cannot read {remote}: hunter2, {user}");
        assert_eq!(access.redact(&text), expected, "{address} {user}");
    }
    // A password stays a secret, even if the path shows it.
    let access = prepare(
        &url("https://h/acme/fleet"),
        &[("username", "acme"), ("password", "acme")],
        &AccessOptions::default(),
    );
    assert_eq!(access.redact("h/acme/fleet"), "h/••••/fleet");
}

#[test]
fn git_uses_the_proxy_with_its_login() {
    let (port, server) = serve(REFUSAL);
    let address = format!("http://127.0.0.1:{port}");
    let data = data(&[("address", &address), ("username", "u@x"), ("password", "p/w")]);
    let proxy = Proxy::from_secret(SecretData { name: "apps/proxy", data: &data }).unwrap();
    let options = AccessOptions { proxy: Some(proxy), ..AccessOptions::default() };
    let remote = url("http://nowhere.invalid/x");
    let access = prepare(&remote, &[], &options);
    run(&access, "git", &["ls-remote", "--", "http://nowhere.invalid/x"]);
    let asked = server.join().unwrap();
    assert!(asked.starts_with("GET http://nowhere.invalid/x/info/refs?"), "{asked}");
    assert!(asked.contains("Proxy-Authorization: Basic dUB4OnAvdw=="), "{asked}");
    assert_eq!(access.redact("via u@x:p%2fw"), "via ••••:••••");

    let remote = url("ssh://git@h/x");
    let login = ssh_credentials(&remote, "-----BEGIN PRIVATE KEY-----\n", &[]);
    let error = AccessPlan::new(&remote, Login::Given(login), options).unwrap_err();
    assert!(matches!(error, AccessError::ProxyForSsh { .. }), "{error}");
}

#[test]
fn git_uses_the_proxy_of_the_environment() {
    let (port, server) = serve(REFUSAL);
    let proxy = PathBuf::from(format!("http://u:hunter2@127.0.0.1:{port}"));
    let access = prepare(&url("http://nowhere.invalid/x"), &[], &process_env(&[("HTTP_PROXY", &proxy)]));
    run(&access, "git", &["ls-remote", "--", "http://nowhere.invalid/x"]);
    assert!(server.join().unwrap().starts_with("GET http://nowhere.invalid/x/info/refs?"));
    assert!(!access.redact(proxy.to_str().unwrap()).contains("hunter2"));
}

fn ssh_credentials(url: &RemoteUrl, identity: &str, more: &[(&str, &str)]) -> Credentials {
    let items = [("identity", identity), ("known_hosts", "h ssh-ed25519 AAAA")];
    credentials(url, &[items.as_slice(), more].concat())
}

/// Makes a private key, encrypted with a passphrase unless that is empty.
fn generate_key(passphrase: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let arguments = ["-q", "-t", "ed25519", "-a", "1", "-N", passphrase, "-f"];
    let output =
        Command::new("ssh-keygen").args(arguments).arg(&path).output().expect("ssh-keygen is installed");
    assert!(output.status.success(), "{output:?}");
    fs::read_to_string(path).unwrap()
}

/// Git connects to the address to which a name was pinned.
///
/// A name that does not resolve is connected at its pinned address, so no other lookup can change the address
/// meanwhile.
#[test]
fn git_connects_to_the_pinned_address() {
    for host in ["fleet.invalid", "Fleet.Invalid."] {
        let (port, server) = serve(REFUSAL);
        let remote = url(&format!("http://{host}:{port}/x"));
        let found = remote.server().unwrap();
        let pin = Pin { server: found, addresses: vec!["127.0.0.1".parse().unwrap()] };
        let options = AccessOptions { pins: vec![pin], ..AccessOptions::default() };
        let access = prepare(&remote, &[], &options);
        run(&access, "git", &["ls-remote", "--", remote.to_argument().to_str().unwrap()]);
        let asked = server.join().unwrap();
        assert!(asked.starts_with("GET /x/info/refs?"), "{asked}");
    }
    // The same holds for the name of a proxy.
    let (port, server) = serve(REFUSAL);
    let address = format!("http://proxy.invalid:{port}");
    let data = data(&[("address", &address)]);
    let proxy = Proxy::from_secret(SecretData { name: "apps/proxy", data: &data }).unwrap();
    let place = Server { host: "proxy.invalid".to_owned(), port };
    assert_eq!(*proxy.server(), place);
    let pins = vec![Pin { server: place, addresses: vec!["127.0.0.1".parse().unwrap()] }];
    let options = AccessOptions { proxy: Some(proxy), pins, ..AccessOptions::default() };
    let access = prepare(&url("http://nowhere.invalid/x"), &[], &options);
    run(&access, "git", &["ls-remote", "--", "http://nowhere.invalid/x"]);
    let asked = server.join().unwrap();
    assert!(asked.starts_with("GET http://nowhere.invalid/x/info/refs?"), "{asked}");
}

#[test]
fn ssh_parses_its_quoted_command() {
    let remote = url("ssh://h/x");
    let login = ssh_credentials(&remote, &generate_key(""), &[]);
    let access = open(&remote, Login::Given(login), &AccessOptions::default());
    let command = variable(&access, "GIT_SSH_COMMAND").unwrap().into_string().unwrap();
    let output = run(&access, "sh", &["-c", &format!("{command} -G h")]);
    assert!(output.status.success(), "{output:?}");
    let found = String::from_utf8(output.stdout).unwrap();
    let option = |name: &str| {
        let path = found.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        PathBuf::from(path.trim())
    };
    for (name, file) in [("identityfile", "identity"), ("userknownhostsfile", "known_hosts")] {
        let path = option(name);
        assert!(path.ends_with(file) && path.exists(), "{name} {}", path.display());
    }
    for line in [
        "user git".to_owned(),
        "batchmode yes".to_owned(),
        "identitiesonly yes".to_owned(),
        "stricthostkeychecking true".to_owned(),
        "connecttimeout 30".to_owned(),
        "serveraliveinterval 15".to_owned(),
        "preferredauthentications publickey".to_owned(),
    ] {
        assert!(found.lines().any(|found| found == line), "{line:?} is missing in\n{found}");
    }
}

#[test]
fn an_encrypted_key_opens_by_its_passphrase_without_a_terminal() {
    let passphrase = "it's $hunter2 \\ \"x\"";
    let remote = url("ssh://me@h/x");
    let key = generate_key(passphrase);
    let login = ssh_credentials(&remote, &key, &[("password", passphrase)]);
    let access = open(&remote, Login::Given(login), &AccessOptions::default());
    let home = PathBuf::from(variable(&access, "HOME").unwrap());
    // ssh-keygen and ssh read keys with the same code.
    let command = variable(&access, "GIT_SSH_COMMAND").unwrap().into_string().unwrap();
    let identity = command.split("IdentityFile=\"").nth(1).and_then(|rest| rest.split('"').next());
    let identity = PathBuf::from(identity.unwrap());
    let output = run(&access, "ssh-keygen", &["-y", "-f", identity.to_str().unwrap()]);
    assert!(output.stdout.starts_with(b"ssh-ed25519 "), "{output:?}");

    let script = PathBuf::from(variable(&access, "SSH_ASKPASS").unwrap());
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o7777, 0o700);
    assert!(!fs::read_to_string(&script).unwrap().contains("hunter2"));
    assert!(!command.contains("BatchMode") && command.contains("NumberOfPasswordPrompts=2"), "{command}");
    assert_eq!(access.redact(&format!("bad {passphrase}: {key}")), "bad ••••: ••••");
    drop(access);
    assert!(!script.exists() && !home.exists() && !identity.exists());
}

#[test]
fn no_secret_stands_in_variables_or_debug_prints() {
    let remote = url("https://a:hunter2@h/x");
    let ssh = url("ssh://git:hunter2@h/x");
    let key = "-----BEGIN PRIVATE KEY-----\nhunter2\n";
    let given = [
        (&remote, credentials(&remote, &[("username", "hunter2"), ("password", "hunter2")])),
        (&url("https://h/x"), credentials(&url("https://h/x"), &[("bearerToken", "hunter2")])),
        (&ssh, ssh_credentials(&ssh, key, &[("password", "hunter2")])),
    ];
    for (remote, login) in &given {
        let access = open(remote, Login::Given(login.clone()), &AccessOptions::default());
        let shown = format!("{access:?} {:?} {remote:?} {remote} {login:?}", access.environment());
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(!shown.contains("aHVudGVyM"), "{shown}");
    }
}

#[test]
fn a_users_own_git_configuration_is_used() {
    let home = tempfile::tempdir().unwrap();
    let helper = "!f() { test \"$1\" = get && echo password=hunter2; }; f";
    let mut own = Configuration::new();
    own.set("credential", None, "helper", helper);
    own.set("user", None, "name", "Me");
    fs::write(home.path().join(".gitconfig"), own.as_bytes()).unwrap();
    let others = ["GIT_ASKPASS", "GIT_DIR", "GH_TOKEN"].map(|name| (name, Path::new("/hunter2")));
    let options = process_env(&[[("HOME", home.path())].as_slice(), &others].concat());
    let remote = url("https://me@h/x");
    let access = open(&remote, Login::OfUser, &options);
    assert_eq!(setting(&access, "user.name", "https://h/x"), "Me");
    assert_eq!(setting(&access, "credential.username", "https://h/x"), "me");
    assert_eq!(variable(&access, "HOME").unwrap(), home.path());
    assert_eq!(variable(&access, "GIT_ASKPASS").unwrap(), "");
    assert_eq!(variable(&access, "GIT_DIR"), None);
    assert_eq!(access.redact("token /hunter2"), "token ••••");

    let access = open(&url("https://me:pw@h/x"), Login::OfUser, &options);
    assert_eq!(setting(&access, "http.extraHeader", "https://h/x"), "Authorization: Basic bWU6cHc=");
}

#[test]
fn there_is_no_prompt_for_a_password() {
    const CHALLENGE: &str = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(".gitconfig"), "[core]\n\taskPass = /bin/echo\n").unwrap();
    let options = process_env(&[("HOME", home.path())]);
    for is_given in [true, false] {
        let (port, server) = serve(CHALLENGE);
        let remote = url(&format!("http://127.0.0.1:{port}/x"));
        let login = credentials(&remote, &[]);
        let login = if is_given { Login::Given(login) } else { Login::OfUser };
        let access = open(&remote, login, &options);
        let output = run(&access, "git", &["ls-remote", "--", &remote.to_string()]);
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(words.contains("terminal prompts disabled"), "{words}");
        server.join().unwrap();
    }
}

#[test]
fn a_missing_bundle_is_named() {
    let remote = url("https://h/x");
    let login = credentials(&remote, &[("ca.crt", CERTIFICATE)]);
    let options = process_env(&[("SSL_CERT_FILE", Path::new("/missing/roots.pem"))]);
    let error = AccessPlan::new(&remote, Login::Given(login), options).unwrap().open().unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the certificates in /missing/roots.pem: correct SSL_CERT_FILE, or the file"
    );
}

/// Fragments of URLs to combine at random.
fn scraps() -> impl Strategy<Value = String> {
    let scraps = [
        "http", "https", "ssh", "file", "ext", "git", "://", "::", ":", "/", "//", "@", "-", "%", "%2F",
        "%40", "?", "#", "[", "]", "[::1]", "host", "1.2.3.4", "22", "65536", "..", ".", "~", " ", "\n",
        "\0", "é", "\\", "user", "HUNTER2",
    ];
    let scrap =
        prop_oneof![9 => prop::sample::select(scraps.to_vec()).prop_map(str::to_owned), 1 => any::<String>()];
    prop::collection::vec(scrap, 0..12).prop_map(|scraps| scraps.concat())
}

fn check(text: &str) -> Result<(), TestCaseError> {
    for locals in [LocalPaths::Refused, LocalPaths::Under(Path::new("/srv"))] {
        let Ok(url) = RemoteUrl::parse(text, locals) else { continue };
        prop_assert!(!url.to_argument().as_encoded_bytes().starts_with(b"-"));
        // The URL that git gets parses to the same address.
        let again =
            RemoteUrl::parse(url.to_argument().to_str().unwrap(), LocalPaths::Under(Path::new("/srv")));
        let again = again.map_err(|error| TestCaseError::fail(format!("{text:?}: {error}")))?;
        prop_assert_eq!(again.to_argument(), url.to_argument());
        prop_assert!(again.password().is_none());
        let _ = url.redirected(text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_breaks_the_reading_of_urls(text in scraps()) {
        check(&text)?;
    }

    #[test]
    fn a_password_is_never_shown(
        scheme in prop::sample::select(vec!["http", "https", "ssh"]),
        user in "[a-z%@:]{0,4}",
        // A slash ends the password: https://me:80/SECRET@host is a path on the host `me`.
        password in "[!-~&&[^/?#]]{0,6}SECRET[!-~&&[^/?#]]{0,6}",
        path in "(/[a-z~%.]{0,3}){0,3}",
    ) {
        let text = format!("{scheme}://{user}:{password}@host{path}");
        let shown = match RemoteUrl::parse(&text, LocalPaths::Refused) {
            Ok(url) if url.user().is_some_and(|user| user.contains("SECRET")) => String::new(),
            Ok(url) => format!("{url} {url:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        prop_assert!(!shown.contains("SECRET"), "{}", shown);
    }
}

#[test]
fn a_path_that_is_not_utf_8_stays_as_it_is() {
    let base = PathBuf::from(OsString::from_vec(b"/srv/\xff".to_vec()));
    let url = RemoteUrl::parse("fleet.git", LocalPaths::Under(&base)).unwrap();
    assert_eq!(url.to_argument().as_encoded_bytes(), b"/srv/\xff/fleet.git");
}
