//! Each kind of login: fetch and push work, and no secret is shown.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use serde_json::json;

use super::process_audit::{assert_without, command_lines};
use super::scene::{Scene, run_in_time};
use crate::support::certificates::Authority;
use crate::support::git_host::{Access, Fault, GitHost, Operation, Settings};
use crate::support::program::Run;
use crate::support::proxy_host::ProxyHost;
use crate::support::ssh_host::{PASSPHRASE, SshHost};

/// Long enough for the audit to see each waiting process.
const DELAY: Duration = Duration::from_millis(150);

/// A password with special characters of URLs, shells and configurations; unique to the test.
fn password() -> String {
    format!("s3cr3t \"'\\ #%@:/pässword {}", unique())
}

/// A token that is unique to the test.
fn token() -> String {
    format!("t0ken-{}", unique())
}

/// Returns a word that is unique to the test.
/// It is unique because the files of all tests are in one directory.
fn unique() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{}-{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn settings(access: Access) -> Settings {
    Settings { access, tls: None }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// Slows the host down, so that the audit sees each of git's processes.
fn slow(host: &GitHost) {
    for operation in [Operation::ListForFetch, Operation::Fetch, Operation::ListForPush, Operation::Push] {
        host.always(operation, Fault::Delay(DELAY));
    }
}

/// Runs the program twice with a state.
/// It pushes, then finds no change; and none of the secrets is shown.
#[track_caller]
fn works(scene: &Scene, secrets: &[&str], more: &[&str]) {
    works_by(scene, secrets, || {
        let mut command = scene.command();
        command.arg("--state").arg(scene.state()).args(more);
        command
    });
}

#[track_caller]
fn works_by(scene: &Scene, secrets: &[&str], command: impl Fn() -> Command) {
    // A slow hook of the server keeps the push long enough for the audit.
    scene.repository.hook("pre-receive", "sleep 0.2");
    let (run, lines) = command_lines(|| run_in_time(&mut command()).with_status(0));
    assert_eq!(scene.tag("main"), "5.0.3", "{run:?}");
    assert!(run.output.contains("pushed commit '"), "{run:?}");
    for word in ["ls-remote", "fetch", "push"] {
        let is_seen = lines.iter().any(|line| memmem::find(line, format!("\0{word}\0").as_bytes()).is_some());
        assert!(is_seen, "the watch did not see git {word}");
    }
    let again = run_in_time(&mut command()).with_status(0);
    assert!(again.output.contains("no change since last reconciliation"), "{again:?}");
    for secret in secrets {
        let is_seen = |line: &Vec<u8>| memmem::find(line, secret.as_bytes()).is_some();
        let seen = lines.iter().find(|line| is_seen(line));
        assert!(seen.is_none(), "{secret:?}: {}", seen.unwrap().escape_ascii());
        assert_hidden(scene, &run, secret);
        assert_hidden(scene, &again, secret);
    }
    scene.repository.assert_sound();
}

/// Asserts that a run did not reveal a secret.
/// The secret must be neither in the output of the run nor in the files that it left.
#[track_caller]
fn assert_hidden(scene: &Scene, run: &Run, secret: &str) {
    assert!(!run.output.contains(secret) && !run.errors.contains(secret), "{secret:?}: {run:?}");
    assert_without(&scene.temporary(), secret);
    assert_without(&scene.state(), secret);
    for item in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        if item.file_name().to_string_lossy().starts_with("tagboat-") {
            assert_without(&item.path(), secret);
        }
    }
}

/// The forms in which user and password could be shown.
fn forms(user: &str, password: &str) -> [String; 2] {
    [password.to_owned(), STANDARD.encode(format!("{user}:{password}"))]
}

#[test]
fn without_credentials() {
    let scene = Scene::new();
    let host = scene.serve(Settings::default());
    slow(&host);
    works(&scene, &[], &[]);
    assert!(host.requests().iter().all(|record| record.request.authorization().is_none()));
}

#[test]
fn by_user_and_password_of_a_secret_among_the_manifests() {
    let secret = &password();
    for field in ["stringData", "data"] {
        let scene = Scene::new();
        let host = scene.serve(settings(Access::basic("bot", secret)));
        slow(&host);
        scene.source(json!({"url": host.url("fleet.git"), "secretRef": {"name": "login"}}));
        let value = |text: &str| if field == "data" { STANDARD.encode(text) } else { text.to_owned() };
        scene.secret("login", json!({field: {"username": value("bot"), "password": value(secret)}}));
        let [password, pair] = forms("bot", secret);
        works(&scene, &[&password, &pair], &[]);
        assert!(host.requests().iter().all(|record| record.is_admitted), "nothing was refused first");
    }
}

#[test]
fn by_a_bearer_token() {
    let token = &token();
    let scene = Scene::new();
    let host = scene.serve(settings(Access::bearer(token)));
    slow(&host);
    scene.source(json!({"url": host.url("fleet.git"), "secretRef": {"name": "login"}}));
    // `kubectl create secret --from-file` keeps a line break at the end.
    scene.secret("login", json!({"stringData": {"bearerToken": format!("{token}\n")}}));
    works(&scene, &[token], &[]);
}

#[test]
fn by_the_user_info_of_the_url() {
    let secret = &format!("p%ss w0rd {}", unique());
    let encoded = secret.replace('%', "%25").replace(' ', "%20");
    let scene = Scene::new();
    let host = scene.serve(settings(Access::basic("b@t", secret)));
    slow(&host);
    let url = host.url("fleet.git").replace("http://", &format!("http://b%40t:{encoded}@"));
    scene.source(json!({"url": url}));
    let [password, pair] = forms("b@t", secret);
    works(&scene, &[&password, &pair, &encoded], &[]);
}

#[test]
fn by_the_password_of_a_secret_for_the_user_of_the_url() {
    let secret = &password();
    let scene = Scene::new();
    let host = scene.serve(settings(Access::basic("bot", secret)));
    slow(&host);
    let url = host.url("fleet.git").replace("http://", "http://bot@");
    scene.source(json!({"url": url, "secretRef": {"name": "login"}}));
    scene.secret("login", json!({"stringData": {"password": secret}}));
    let [password, pair] = forms("bot", secret);
    works(&scene, &[&password, &pair], &[]);
}

#[test]
fn by_a_secret_in_a_directory_of_one_namespace_or_any() {
    let secret = &password();
    for name in ["login", "default/login"] {
        let scene = Scene::new();
        let host = scene.serve(settings(Access::basic("bot", secret)));
        slow(&host);
        scene.source(json!({"url": host.url("fleet.git"), "secretRef": {"name": "login"}}));
        // It has precedence over the Secret among the manifests.
        scene.secret("login", json!({"stringData": {"username": "bot", "password": "old"}}));
        let directory = scene.secret_directory(&[("username", "bot\n"), ("password", secret)]);
        // The layout of a volume in a pod.
        fs::create_dir(directory.join("..data")).unwrap();
        let [password, pair] = forms("bot", secret);
        let argument = format!("{name}={}", directory.display());
        works(&scene, &[&password, &pair], &["--secret", &argument]);
    }
}

#[test]
fn by_a_secret_beside_a_repository_of_another_namespace() {
    let token = &token();
    let scene = Scene::new();
    let host = scene.serve(settings(Access::bearer(token)));
    slow(&host);
    scene.automation(json!({"sourceRef": {"namespace": "sources"}}));
    let metadata = json!({"namespace": "sources"});
    scene.write(
        "source.yaml",
        &json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"namespace": "sources", "name": "fleet"},
            "spec": {"interval": "1m", "url": host.url("fleet.git"), "ref": {"branch": "main"}, "secretRef": {"name": "login"}},
        })
        .to_string(),
    );
    scene.secret("login", json!({"metadata": metadata, "stringData": {"bearerToken": token}}));
    works(&scene, &[token], &[]);
}

#[test]
fn over_tls_of_a_private_authority() {
    let secret = &password();
    for key in ["ca.crt", "caFile"] {
        let (scene, authority) = (Scene::new(), Authority::new());
        let settings = Settings { access: Access::basic("bot", secret), tls: Some(authority.server(false)) };
        let host = scene.serve(settings);
        slow(&host);
        scene.source(json!({"url": host.url("fleet.git"), "secretRef": {"name": "login"}}));
        let certificate = read(authority.certificate_file());
        let data = json!({"username": "bot", "password": secret, key: certificate});
        scene.secret("login", json!({"stringData": data}));
        let [password, pair] = forms("bot", secret);
        works(&scene, &[&password, &pair], &[]);
    }
}

/// With too little memory, TLS libraries reported that such certificates cannot be read.
#[test]
fn over_tls_with_hundreds_of_certificates_in_the_secret() {
    let (scene, authority) = (Scene::new(), Authority::new());
    let host = scene.serve(Settings { access: Access::Anonymous, tls: Some(authority.server(false)) });
    slow(&host);
    scene.source(json!({"url": host.url("fleet.git"), "secretRef": {"name": "login"}}));
    let others: String = (0..500).map(|_| read(Authority::new().certificate_file())).collect();
    let authorities = others + &read(authority.certificate_file());
    assert!(authorities.len() > 250_000, "{}", authorities.len());
    scene.secret("login", json!({"stringData": {"ca.crt": authorities}}));
    works(&scene, &[], &[]);
}

#[test]
fn by_a_client_certificate() {
    let (scene, authority) = (Scene::new(), Authority::new());
    let host = scene.serve(Settings { access: Access::Anonymous, tls: Some(authority.server(true)) });
    slow(&host);
    scene.source(json!({"url": host.url("fleet.git"), "secretRef": {"name": "login"}}));
    let identity = authority.issue("bot");
    let key = read(identity.key_file());
    let data = json!({
        "ca.crt": read(authority.certificate_file()),
        "tls.crt": read(identity.certificate_file()),
        "tls.key": key,
    });
    scene.secret("login", json!({"stringData": data}));
    works(&scene, &[key.lines().nth(1).unwrap()], &[]);
}

#[test]
fn by_an_ssh_key_with_or_without_a_passphrase() {
    let host = SshHost::start();
    for (key, passphrase) in [(host.key(), None), (host.locked_key(), Some(PASSPHRASE))] {
        let scene = Scene::new();
        scene.source(json!({"url": host.url(scene.repository.path()), "secretRef": {"name": "login"}}));
        let mut data = json!({"identity": key.private(), "known_hosts": host.known_hosts()});
        if let Some(passphrase) = passphrase {
            data["password"] = passphrase.into();
        }
        scene.secret("login", json!({"stringData": data}));
        let key = key.private();
        // The first lines are the same in many keys.
        let line = key.lines().nth_back(2).unwrap();
        works(&scene, &[line], &[]);
    }
}

/// OpenSSH 9.2 reads no Ed25519 key in PKCS#8: "invalid format".
#[test]
fn by_an_ssh_key_as_flux_writes_it() {
    let host = SshHost::start();
    host.authorize(&read(Path::new("testdata/login/ed25519.pub")));
    let key = read(Path::new("testdata/login/ed25519-pkcs8.pem"));
    for passphrase in [None, Some("needless")] {
        let scene = Scene::new();
        scene.source(json!({"url": host.url(scene.repository.path()), "secretRef": {"name": "login"}}));
        let mut data = json!({"identity": key, "known_hosts": host.known_hosts()});
        if let Some(passphrase) = passphrase {
            data["password"] = passphrase.into();
        }
        scene.secret("login", json!({"stringData": data}));
        works(&scene, &[key.lines().nth(1).unwrap()], &[]);
    }
}

#[test]
fn an_ssh_key_with_foreign_line_breaks_and_no_end_works() {
    let host = SshHost::start();
    let scene = Scene::new();
    scene.source(json!({"url": host.url(scene.repository.path()), "secretRef": {"name": "login"}}));
    let foreign = |text: &str| text.trim_end().replace('\n', "\r\n");
    let data =
        json!({"identity": foreign(&host.key().private()), "known_hosts": foreign(&host.known_hosts())});
    scene.secret("login", json!({"stringData": data}));
    scene.run([""; 0]).with_status(0);
    assert_eq!(scene.tag("main"), "5.0.3");
}

#[test]
fn through_a_proxy_that_wants_a_password() {
    let secret = &password();
    let authority = Authority::new();
    for tls in [None, Some(authority.server(false))] {
        let (scene, proxy) = (Scene::new(), ProxyHost::start());
        let is_tunnel = tls.is_some();
        let host = scene.serve(Settings { access: Access::basic("bot", secret), tls });
        slow(&host);
        scene.source(json!({
            "url": host.url("fleet.git"), "secretRef": {"name": "login"}, "proxySecretRef": {"name": "proxy"},
        }));
        let authority = read(authority.certificate_file());
        let data = json!({"username": "bot", "password": secret, "ca.crt": authority});
        scene.secret("login", json!({"stringData": data}));
        let through = &format!("thr0ugh:w/th@it {}", unique());
        let data = json!({"address": proxy.url(), "username": "pr", "password": through});
        scene.secret("proxy", json!({"stringData": data}));
        let ([password, pair], [of_proxy, proxy_pair]) = (forms("bot", secret), forms("pr", through));
        works(&scene, &[&password, &pair, &of_proxy, &proxy_pair], &[]);
        let requests = proxy.requests();
        let wanted = format!("Basic {proxy_pair}");
        let is_right =
            |line: &str| if is_tunnel { line.starts_with("CONNECT ") } else { line.contains(" http://") };
        assert!(requests.len() >= 4, "{requests:?}");
        for request in &requests {
            assert!(is_right(&request.line), "{request:?}");
            assert_eq!(request.authorization.as_ref(), Some(&wanted), "{request:?}");
        }
    }
}

#[test]
fn by_the_callers_own_credential_store() {
    let secret = &token();
    let scene = Scene::new();
    let host = scene.serve(settings(Access::basic("bot", secret)));
    slow(&host);
    // The GitRepository names it, and it is not needed.
    scene.source(json!({"url": host.url("fleet.git"), "secretRef": {"name": "missing"}}));
    let home = scene.root().join("home");
    fs::write(home.join(".gitconfig"), "[credential]\n\thelper = store\n").unwrap();
    let line = host.url("").replace("http://", &format!("http://bot:{secret}@"));
    fs::write(home.join(".git-credentials"), format!("{line}\n")).unwrap();
    let [password, pair] = forms("bot", secret);
    works(&scene, &[&password, &pair], &["--git-login", "user"]);
}

#[test]
fn by_the_callers_own_ssh_agent() {
    let host = SshHost::start();
    let scene = Scene::new();
    scene.source(json!({"url": host.url(scene.repository.path())}));
    let agent = Agent::start(scene.root());
    let key = host.key().private_file();
    assert!(
        Command::new("ssh-add")
            .arg("-q")
            .arg(key)
            .env("SSH_AUTH_SOCK", &agent.socket)
            .status()
            .unwrap()
            .success()
    );
    // ssh uses the home of the account and not HOME, so an option names the known hosts.
    let known_hosts = scene.root().join("known_hosts");
    fs::write(&known_hosts, host.known_hosts()).unwrap();
    let ssh = format!("ssh -F /dev/null -o UserKnownHostsFile={}", known_hosts.display());
    works_by(&scene, &[], || {
        let mut command = scene.command();
        command.args(["--git-login", "user", "--state"]).arg(scene.state());
        command.env("SSH_AUTH_SOCK", &agent.socket).env("GIT_SSH_COMMAND", &ssh);
        command
    });
}

#[test]
fn by_the_callers_own_ssh_if_their_configuration_replaces_https_with_it() {
    let host = SshHost::start();
    let scene = Scene::new();
    scene.source(json!({"url": "https://git.invalid/fleet.git"}));
    let own = host.url(scene.repository.path()).replace("fleet.git", "");
    let rule = format!("[url \"{own}\"]\n\tinsteadOf = https://git.invalid/\n");
    fs::write(scene.root().join("home/.gitconfig"), rule).unwrap();
    let mut command = scene.command();
    command
        .args(["--git-login", "user"])
        .env("GIT_SSH_COMMAND", host.command(host.key(), &host.known_hosts()));
    run_in_time(&mut command).with_status(0);
    assert_eq!(scene.tag("main"), "5.0.3");
}

#[test]
fn no_configuration_of_the_callers_lets_git_follow_a_redirect() {
    for path in ["fleet.git", "a=b/fleet.git"] {
        for rest in ["", "fleet.git", "a=b/", "a=b/fleet.git"] {
            let scene = Scene::new();
            let host = scene.serve(Settings::default());
            let other = GitHost::start(&scene.root().join("served"), Settings::default());
            scene.source(json!({"url": host.url(path)}));
            let own = format!("[http \"{}\"]\n\tfollowRedirects = true\n", host.url(rest));
            fs::write(scene.root().join("home/.gitconfig"), own).unwrap();
            let to = other.url("fleet.git");
            host.always(Operation::ListForFetch, Fault::Redirect { status: 302, to });
            let run = scene.run(["--git-login", "user"]).with_status(1);
            assert!(run.only_error().contains("redirects to"), "{path} {rest}: {run:?}");
            assert_eq!(other.requests().len(), 0, "{path} {rest}");
        }
    }
}

/// An agent that ends with the test.
struct Agent {
    socket: std::path::PathBuf,
    process: std::process::Child,
}

impl Agent {
    fn start(directory: &Path) -> Self {
        let socket = directory.join("agent");
        let mut command = Command::new("ssh-agent");
        command.arg("-D").arg("-a").arg(&socket).stdout(std::process::Stdio::null());
        let process = command.spawn().unwrap();
        while !socket.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { socket, process }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _already_gone = self.process.kill();
        let _ended = self.process.wait();
    }
}

#[test]
fn no_other_user_can_read_the_kept_files() {
    let scene = Scene::new();
    let host = scene.serve(Settings::default());
    scene.source(json!({"url": host.url("fleet.git").replace("http://", "http://bot:hunter2@")}));
    scene.run_with_state([""; 0]).with_status(0);
    assert_without(&scene.state(), "hunter2");
    let mode = |name: &str| fs::metadata(scene.state().join(name)).unwrap().permissions().mode() & 0o777;
    for item in fs::read_dir(scene.state().join("mirrors")).unwrap().flatten() {
        assert_eq!(mode(&format!("mirrors/{}", item.file_name().display())), 0o700);
    }
}

#[test]
fn through_the_proxy_of_the_environment() {
    let secret = &token();
    let (scene, proxy) = (Scene::new(), ProxyHost::start());
    let host = scene.serve(Settings::default());
    slow(&host);
    let address = proxy.url().replace("http://", &format!("http://pr:{secret}@"));
    let pair = STANDARD.encode(format!("pr:{secret}"));
    works_by(&scene, &[secret, &pair], || {
        let mut command = scene.command();
        command.arg("--state").arg(scene.state()).env("HTTP_PROXY", &address);
        command
    });
    let requests = proxy.requests();
    assert!(requests.len() >= 4, "{requests:?}");
    let wanted = format!("Basic {pair}");
    // Curl sends its password to a proxy at once or upon its challenge, and sends it nothing else.
    for request in &requests {
        assert!(request.authorization.as_ref().is_none_or(|found| *found == wanted), "{request:?}");
    }
    let before = requests.len();
    scene.latest("5.0.4");
    let run = run_in_time(scene.command().env("HTTP_PROXY", &address).env("NO_PROXY", "127.0.0.1"));
    assert_eq!(run.status, Some(0), "{run:?}");
    assert_eq!(proxy.requests().len(), before);
}

#[test]
fn over_tls_of_an_authority_that_the_environment_names() {
    let (scene, authority) = (Scene::new(), Authority::new());
    let host = scene.serve(Settings { access: Access::Anonymous, tls: Some(authority.server(false)) });
    slow(&host);
    works_by(&scene, &[], || {
        let mut command = scene.command();
        command.arg("--state").arg(scene.state()).env("SSL_CERT_FILE", authority.certificate_file());
        command
    });
}

#[test]
fn files_of_a_run_that_was_killed_are_swept_by_the_next() {
    let secret = &token();
    let scene = Scene::new();
    let host = scene.serve(settings(Access::bearer(secret)));
    scene.source(json!({"url": host.url("fleet.git"), "secretRef": {"name": "login"}}));
    scene.secret("login", json!({"stringData": {"bearerToken": secret}}));
    host.always(Operation::ListForFetch, Fault::Hang);
    let mut child = scene.command().spawn().unwrap();
    while host.requests().is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    host.heal();
    let run = scene.run([""; 0]).with_status(0);
    assert_hidden(&scene, &run, secret);
    assert_eq!(scene.tag("main"), "5.0.3");
}
