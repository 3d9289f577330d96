//! Credentials that are refused, missing or malformed.

use serde_json::json;

use super::{CHECKOUT, NONE, SOURCE, closed_port, guarded, refused};
use crate::support::git_host::GitHost;

#[test]
fn a_login_that_is_refused() {
    let sentence = |host: &GitHost| {
        format!(
            "{CHECKOUT}: unable to list '{}': the server requires credentials, or does not accept them; check the Secret \
             that spec.secretRef of the GitRepository names",
            host.url("fleet.git")
        )
    };
    for data in [
        json!({"username": "bot", "password": "wrong"}),
        json!({"username": "hunter2", "password": "bot"}),
        json!({"username": "bot"}),
        json!({"bearerToken": "hunter2"}),
    ] {
        let (scene, host) = guarded(&data);
        refused(&scene, NONE, &sentence(&host));
    }
    let (scene, host) = guarded(&json!({}));
    scene.source(json!({"url": host.url("fleet.git")}));
    refused(&scene, NONE, &sentence(&host));
}

#[test]
fn the_callers_own_login_that_is_refused_is_not_blamed_on_a_secret() {
    let (scene, host) = guarded(&json!({}));
    let sentence = format!(
        "{CHECKOUT}: unable to list '{}': the server requires a login, or does not accept yours; check that git's \
         credential helper has the right one for this server",
        host.url("fleet.git")
    );
    refused(&scene, ["--git-login", "user"], &sentence);
}

#[test]
fn a_secret_that_is_missing() {
    let (scene, host) = guarded(&json!({}));
    let advice = "give it as a Secret among the manifests or as --secret NAMESPACE/NAME=DIR";
    // The caller's own logins are not used for a proxy.
    for (kind, more) in [("auth", ", or log in as yourself with --git-login user"), ("proxy", "")] {
        let field = if kind == "auth" { "secretRef" } else { "proxySecretRef" };
        scene.source(json!({"url": host.url("fleet.git"), field: {"name": "other"}}));
        let missing =
            format!("{SOURCE}: failed to get {kind} secret 'default/other': secrets \"other\" not found");
        refused(&scene, NONE, &format!("{missing}; {advice}{more}"));
    }
}

#[test]
fn an_unused_or_invalid_secret_of_the_command_line() {
    let (scene, host) = guarded(&json!({"username": "bot", "password": "hunter2"}));
    let idle = |text: &str| {
        format!(
            "warning: --secret {text:?} is not used: neither these automations nor their GitRepositories and \
             ImageRepositories name it\n"
        )
    };
    for (others, errors) in [
        (vec!["elsewhere/login=."], idle("elsewhere/login=.")),
        (vec!["other=.", "third=."], idle("other=.") + &idle("third=.")),
    ] {
        let others = others.iter().flat_map(|text| ["--secret", text]);
        let run = scene.run(others.chain(["--dry-run"])).with_status(0);
        assert_eq!(run.errors, errors);
    }
    let keys = scene.secret_directory(&[("username", "bot"), ("password", "hunter2")]);
    let given = format!("login={}", keys.display());
    let run = scene.run(["--dry-run", "--secret", &given]).with_status(0);
    assert_eq!(run.errors, "");
    let run = scene.run(["--dry-run", "--secret", &given, "--secret", &given]).with_status(0);
    assert_eq!(run.errors, idle(&given), "the first one counts");

    scene.write("text", "");
    for (text, cause) in [
        ("login=nowhere", "nowhere: No such file or directory (os error 2)"),
        ("login=manifests/text", "manifests/text is not a directory"),
    ] {
        let run = scene.run(["--secret", text]).with_status(2);
        assert_eq!(run.only_error(), format!("error: --secret {text:?}: {cause}"));
    }
    drop(host);
}

#[test]
fn a_secret_that_is_malformed() {
    let (scene, host) = guarded(&json!({}));
    let options = "failed to configure authentication options: ";
    let certificate = "-----BEGIN CERTIFICATE-----";
    for (data, words) in [
        (json!({"password": "hunter2"}), format!("{options}invalid 'http' auth option: 'password' requires 'username' to be set")),
        (json!({"username": "bot", "password": "hunter2", "bearerToken": "hunter2"}), "basic auth and bearer token cannot be set at the same time".to_owned()),
        (json!({"user": "hunter2"}), "secret 'default/login' has no credentials for http: it has user; set username and password, or bearerToken, and for TLS ca.crt, or tls.crt and tls.key".to_owned()),
        (json!({}), "secret 'default/login' has no credentials for http: it has no keys; set username and password, or bearerToken, and for TLS ca.crt, or tls.crt and tls.key".to_owned()),
        (json!({"bearerToken": ""}), "secret 'default/login': key 'bearerToken' is empty: give the token, or remove the key".to_owned()),
        (json!({"bearerToken": "hunter2 x"}), "secret 'default/login': key 'bearerToken' has a character that an HTTP header cannot carry: correct it".to_owned()),
        (json!({"username": "bot", "password": "hunter2\nb"}), "secret 'default/login': key 'password' has a line break inside: give it on one line".to_owned()),
        (json!({"ca.crt": "hunter2"}), "secret 'default/login': key 'ca.crt' holds no certificate in PEM".to_owned()),
        (json!({"tls.crt": "hunter2"}), "secret 'default/login' contains 'tls.crt' but missing 'tls.key'".to_owned()),
        (json!({"tls.key": "hunter2"}), "secret 'default/login' contains 'tls.key' but missing 'tls.crt'".to_owned()),
        (json!({"tls.crt": certificate, "tls.key": "hunter2"}), "secret 'default/login': key 'tls.key' holds no private key in PEM".to_owned()),
    ] {
        scene.secret("login", json!({"stringData": data}));
        refused(&scene, NONE, &format!("{SOURCE}: {words}"));
    }
    scene.source(json!({"url": host.url("fleet.git").replace("http://", "http://bot@"), "secretRef": {"name": "login"}}));
    scene.secret("login", json!({"stringData": {"bearerToken": "hunter2"}}));
    refused(&scene, NONE, &format!("{SOURCE}: basic auth and bearer token cannot be set at the same time"));
    scene.secret("login", json!({"stringData": {"githubAppID": "1"}}));
    refused(
        &scene,
        NONE,
        "secretRef 'default/login' has github app data but provider is not set to github: invalid source configuration",
    );
    let file = scene.root().join("manifests/secret-login.yaml");
    let unusable = format!(
        "{SOURCE}: failed to get auth secret 'default/login': {}: Secret default/login cannot be used: ",
        file.display()
    );
    for (secret, words) in [
        (
            json!({"data": {"password": "hunter2"}}),
            "the value of data.password is not base64; plain text belongs in stringData",
        ),
        (json!({"data": {"password": 2}}), "the value of data.password is not a string; put it in quotes"),
        (json!({"data": "hunter2"}), "data must be a mapping"),
        (
            json!({"sops": {}, "data": {"password": "ENC[hunter2]"}}),
            "it is encrypted with SOPS, which tagboat does not read; give it decrypted",
        ),
    ] {
        scene.secret("login", secret);
        refused(&scene, NONE, &format!("{unusable}{words}"));
    }
    scene.source(json!({"url": host.url("fleet.git"), "proxySecretRef": {"name": "proxy"}}));
    for (data, words) in [
        (json!({}), "key 'address' not found"),
        (json!({"address": ""}), "proxy address is empty"),
        (
            json!({"address": "ftp://u:hunter2@p"}),
            "proxy URL must use one of the supported schemes (http, https, socks5), got 'ftp'",
        ),
        (
            json!({"address": "http://u:hunter2@p:x"}),
            "key 'address' is not a URL with a host and a port: write http://HOST:PORT",
        ),
    ] {
        scene.secret("proxy", json!({"stringData": data}));
        refused(&scene, NONE, &format!("{SOURCE}: secret 'default/proxy': {words}"));
    }
    scene.secret("proxy", json!({"stringData": {"address": format!("http://127.0.0.1:{}", closed_port())}}));
    refused(
        &scene,
        NONE,
        &format!("{CHECKOUT}: unable to list '{}': the server cannot be reached: …", host.url("fleet.git")),
    );
}
