use std::collections::BTreeMap;

use super::*;
use crate::git::LocalPaths;

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n";
const HOSTS: &str = "host ssh-ed25519 AAAA\n";

/// Keys and values of a secret.
type Items<'a> = &'a [(&'a str, &'a str)];

fn read(url: &str, data: Items<'_>) -> Result<Credentials, CredentialsError> {
    let data: BTreeMap<String, Secret> =
        data.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect();
    let url = RemoteUrl::parse(url, LocalPaths::Under("/".as_ref())).unwrap();
    let secret = SecretData { name: "apps/login", data: &data };
    Credentials::generic(&url, (!data.is_empty()).then_some(secret))
}

/// Prints a login in one line, secrets included.
fn show(credentials: &Credentials) -> String {
    let text = |secret: &Secret| String::from_utf8_lossy(secret.expose()).into_owned();
    match credentials {
        Credentials::Local => "local".to_owned(),
        Credentials::Ssh(ssh) => format!("{} {:?}", ssh.user, ssh.passphrase.as_ref().map(text)),
        Credentials::Http(http) => {
            let login = match &http.login {
                HttpLogin::Anonymous => "anonymous".to_owned(),
                HttpLogin::Basic { user, password } => format!("{}:{}", text(user), text(password)),
                HttpLogin::Bearer(token) => format!("bearer {}", text(token)),
            };
            let authority = if http.authority.is_some() { " +authority" } else { "" };
            let certificate = if http.certificate.is_some() { " +certificate" } else { "" };
            format!("{login}{authority}{certificate}")
        }
    }
}

#[test]
fn a_login_is_read_as_flux_reads_it() {
    let identity = ("identity", KEY);
    let hosts = ("known_hosts", HOSTS);
    let cases: &[(&str, Items<'_>, &str)] = &[
        ("https://h/x", &[], "anonymous"),
        ("https://a:b@h/x", &[("other", "x")], "a:b"),
        ("https://h/x", &[("username", "u"), ("password", "p")], "u:p"),
        ("http://h/x", &[("username", "u"), ("password", "p")], "u:p"),
        ("https://h/x", &[("username", "u\n"), ("password", "p w\r\n")], "u:p w"),
        ("https://h/x", &[("username", "u")], "u:"),
        ("https://a:b@h/x", &[], "a:b"),
        ("https://a:b@h/x", &[("username", "u")], "u:b"),
        ("https://a:b@h/x", &[("password", "p")], "a:p"),
        ("https://a:b@h/x", &[("username", ""), ("password", "")], "a:b"),
        ("https://h/x", &[("bearerToken", "t")], "bearer t"),
        ("https://h/x", &[("bearerToken", "t\n"), ("username", ""), ("password", "")], "bearer t"),
        ("https://h/x", &[("ca.crt", CERTIFICATE), ("caFile", "x")], "anonymous +authority"),
        ("https://h/x", &[("caFile", CERTIFICATE)], "anonymous +authority"),
        ("https://h/x", &[("tls.crt", CERTIFICATE), ("tls.key", KEY)], "anonymous +certificate"),
        ("ssh://h/x", &[identity, hosts], "git None"),
        ("ssh://me:b@h/x", &[identity, hosts, ("username", "u")], "me None"),
        ("ssh://h/x", &[identity, hosts, ("password", "p\n")], "git Some(\"p\")"),
        ("/srv/x", &[], "local"),
        ("file:///srv/x", &[("username", "u")], "local"),
    ];
    for (url, data, expected) in cases {
        let credentials = read(url, data).unwrap_or_else(|error| panic!("{url} {data:?}: {error}"));
        assert_eq!(show(&credentials), *expected, "{url} {data:?}");
    }
}

#[test]
fn a_bad_secret_is_refused_in_one_sentence() {
    let identity = ("identity", KEY);
    let hosts = ("known_hosts", HOSTS);
    let cases: &[(&str, Items<'_>, &str)] = &[
        (
            "https://h/x",
            &[("password", "p")],
            "invalid 'https' auth option: 'password' requires 'username' to be set",
        ),
        ("http://:p@h/x", &[], "invalid 'http' auth option: 'password' requires 'username' to be set"),
        (
            "https://:p@h/x",
            &[("bearerToken", "t")],
            "invalid 'https' auth option: 'password' requires 'username' to be set",
        ),
        (
            "https://u@h/x",
            &[("bearerToken", "t")],
            "basic auth and bearer token cannot be set at the same time",
        ),
        (
            "https://h/x",
            &[("bearerToken", "t"), ("username", "u"), ("password", "p")],
            "basic auth and bearer token cannot be set at the same time",
        ),
        (
            "https://h/x",
            &[("bearerToken", "")],
            "secret 'apps/login': key 'bearerToken' is empty: give the token, or remove the key",
        ),
        (
            "https://h/x",
            &[("bearerToken", "hunter\nX: 2")],
            "secret 'apps/login': key 'bearerToken' has a line break inside: give it on one line",
        ),
        (
            "https://h/x",
            &[("bearerToken", "hunter\n\n")],
            "secret 'apps/login': key 'bearerToken' has a line break inside: give it on one line",
        ),
        (
            "https://h/x",
            &[("bearerToken", "hunter\0")],
            "secret 'apps/login': key 'bearerToken' has a control character: remove it",
        ),
        (
            "https://h/x",
            &[("bearerToken", "hunter 2")],
            "secret 'apps/login': key 'bearerToken' has a character that an HTTP header cannot carry: correct it",
        ),
        (
            "https://h/x",
            &[("username", "hun\nter")],
            "secret 'apps/login': key 'username' has a line break inside: give it on one line",
        ),
        (
            "https://h/x",
            &[("ca.crt", "hunter")],
            "secret 'apps/login': key 'ca.crt' holds no certificate in PEM",
        ),
        ("https://h/x", &[("caFile", KEY)], "secret 'apps/login': key 'caFile' holds no certificate in PEM"),
        (
            "https://h/x",
            &[("tls.crt", CERTIFICATE)],
            "secret 'apps/login' contains 'tls.crt' but missing 'tls.key'",
        ),
        ("https://h/x", &[("tls.key", KEY)], "secret 'apps/login' contains 'tls.key' but missing 'tls.crt'"),
        (
            "https://h/x",
            &[("tls.key", CERTIFICATE), ("tls.crt", CERTIFICATE)],
            "secret 'apps/login': key 'tls.key' holds no private key in PEM",
        ),
        (
            "https://h/x",
            &[("tls.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"), ("tls.crt", CERTIFICATE)],
            "secret 'apps/login': key 'tls.key' is encrypted: give the key without a passphrase",
        ),
        ("ssh://h/x", &[], "invalid 'ssh' auth option: 'identity' is required"),
        ("ssh://h/x", &[hosts], "invalid 'ssh' auth option: 'identity' is required"),
        ("ssh://h/x", &[identity], "invalid 'ssh' auth option: 'known_hosts' is required"),
        (
            "ssh://h/x",
            &[("identity", "ssh-ed25519 hunter"), hosts],
            "secret 'apps/login': key 'identity' holds no private key: give one in PEM or OpenSSH form",
        ),
        (
            "ssh://h/x",
            &[("identity", CERTIFICATE), hosts],
            "secret 'apps/login': key 'identity' holds no private key: give one in PEM or OpenSSH form",
        ),
        (
            "ssh://h/x",
            &[("identity", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"), hosts],
            "secret 'apps/login': key 'identity' is in encrypted PKCS#8, which Flux does not read either: rewrite it in \
             OpenSSH's form with `ssh-keygen -p -f FILE`, of OpenSSH 9.6 or newer if it is an Ed25519 key",
        ),
        (
            "ssh://h/x",
            &[identity, ("known_hosts", "# host ssh-rsa A\n\nh\n")],
            "secret 'apps/login': key 'known_hosts' has no line of host, key type and key: fill it with ssh-keyscan, and verify the keys",
        ),
        (
            "https://h/x",
            &[("githubAppID", "1")],
            "secretRef 'apps/login' has github app data but provider is not set to github: invalid source configuration",
        ),
        ("ssh://h/x", &[("githubAppID", "1")], "invalid 'ssh' auth option: 'identity' is required"),
    ];
    for (url, data, expected) in cases {
        let error = read(url, data).unwrap_err();
        assert_eq!(error.to_string(), *expected, "{url} {data:?}");
        assert!(!format!("{error:?}").contains("hunter"), "{error:?}");
    }
}

#[test]
fn a_wrong_provider_is_not_an_authentication_option_error() {
    let unexpected = read("https://h/x", &[("githubAppID", "1")]).unwrap_err();
    assert!(matches!(unexpected, CredentialsError::UnexpectedAppData { .. }));
    assert!(!unexpected.is_authentication_option());
    let missing = read("ssh://h/x", &[]).unwrap_err();
    assert!(missing.is_authentication_option());
}

#[test]
fn an_encrypted_openssh_key_is_known_by_its_cipher() {
    let key = |start: &str| format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{start}\n");
    assert!(!is_encrypted(
        key("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz").as_bytes()
    ));
    assert!(is_encrypted(key("b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABDz").as_bytes()));
    assert!(is_encrypted(b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"));
    assert!(!is_encrypted(KEY.as_bytes()));
}

#[test]
fn a_key_is_normalized_to_the_form_that_ssh_reads() {
    let identity = "a comment\r\n-----BEGIN PRIVATE KEY-----\r\nAA==\r\n-----END PRIVATE KEY-----";
    let data = [("identity", identity), ("known_hosts", "h ssh-rsa A")];
    let Credentials::Ssh(ssh) = read("ssh://h/x", &data).unwrap() else { panic!("no ssh") };
    assert_eq!(ssh.identity.expose(), KEY.as_bytes());
    assert_eq!(ssh.known_hosts.expose(), b"h ssh-rsa A\n");
}

#[test]
fn no_secret_shows_in_debug() {
    let cases: &[(&str, Items<'_>)] = &[
        ("https://hunter2:hunter2@h/x", &[("username", "hunter2"), ("password", "hunter2")]),
        ("https://h/x", &[("bearerToken", "hunter2")]),
        ("https://h/x", &[("tls.crt", CERTIFICATE), ("tls.key", "-----BEGIN PRIVATE KEY-----\nhunter2\n")]),
        (
            "ssh://h/x",
            &[
                ("identity", "-----BEGIN PRIVATE KEY-----\nhunter2\n"),
                ("known_hosts", HOSTS),
                ("password", "hunter2"),
            ],
        ),
    ];
    for (url, data) in cases {
        let shown = format!("{:?}", read(url, data).unwrap());
        assert!(!shown.contains("hunter2") && shown.contains("••••"), "{shown}");
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect();
        let shown = format!("{:?}", SecretData { name: "a/b", data: &data });
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_secret_without_an_http_login_is_not_an_anonymous_login() {
    let many: Vec<(String, &str)> = (0..10).map(|number| (format!("k{number}"), "v")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    let cases: &[(Items<'_>, &str)] = &[
        (&[], "no keys"),
        (&[("user", "hunter2"), ("pass", "hunter2")], "pass, user"),
        (&[("username", ""), ("password", "")], "password (empty), username (empty)"),
        (&[("certFile", "hunter2"), ("keyFile", "hunter2")], "certFile, keyFile"),
        (&[("identity", KEY), ("known_hosts", HOSTS)], "identity, known_hosts"),
        (&many, "k0, k1, k2, k3, k4, k5, k6, k7, 2 more"),
    ];
    for (data, found) in cases {
        let data: BTreeMap<String, Secret> =
            data.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect();
        for scheme in ["http", "https"] {
            let url = RemoteUrl::parse(&format!("{scheme}://h/x"), LocalPaths::Refused).unwrap();
            let secret = SecretData { name: "apps/login", data: &data };
            let error = Credentials::generic(&url, Some(secret)).unwrap_err();
            let message = format!(
                "secret 'apps/login' has no credentials for {scheme}: it has {found}; set username and password, or \
                 bearerToken, and for TLS ca.crt, or tls.crt and tls.key"
            );
            assert_eq!(error.to_string(), message);
        }
    }
}

/// Each of them is searched for in all output of git.
#[test]
fn logins_and_keys_have_a_longest_length() {
    let long = "x".repeat(64 * 1024);
    let key = format!("{KEY}{long}");
    for (url, items, name) in [
        ("https://h/x", vec![("username", "u"), ("password", &*format!("{long}x"))], "password"),
        ("https://h/x", vec![("bearerToken", &*format!("{long}x"))], "bearerToken"),
        ("https://h/x", vec![("tls.crt", CERTIFICATE), ("tls.key", &*key)], "tls.key"),
        ("ssh://h/x", vec![("identity", &*key), ("known_hosts", HOSTS)], "identity"),
    ] {
        let error = read(url, &items).unwrap_err();
        let expected = format!("secret 'apps/login': key '{name}' is longer than 64 KiB: correct it");
        assert_eq!(error.to_string(), expected);
    }
}
