//! Any text as the kubeconfig of another cluster.

use kube::Config;
use kube::config::Kubeconfig;
use secrecy::{ExposeSecret, SecretString};
use tagboat::objects::cluster::client;
use tagboat::objects::remote_clusters::{parse_kubeconfig, undefined_user};
use tokio::runtime;

/// The length from which a secret is hardly a part of another word.
const MIN_SECRET: usize = 8;

/// The maximum length of an error of an invalid kubeconfig, which quotes nothing.
const MAX_DEFECT: usize = 256;

/// Parses any text as the kubeconfig of another cluster, and creates the client.
///
/// An accepted kubeconfig refers to no program and no file, and sends a login by TLS only. An error has no secret.
pub fn kubeconfig(input: &[u8]) {
    let known = std::str::from_utf8(input).ok().and_then(|text| Kubeconfig::from_yaml(text).ok());
    if let Some(known) = &known {
        let contexts = known.contexts.iter().map(|context| Some(context.name.as_str()));
        for context in contexts.chain([None]) {
            drop(undefined_user(known, context));
        }
    }
    let error = match parse_kubeconfig(input) {
        Ok(config) => {
            check(&config);
            // The client starts a task.
            let runtime =
                runtime::Builder::new_current_thread().build().expect("a runtime needs no resources");
            let _context = runtime.enter();
            let _ = rustls::crypto::ring::default_provider().install_default();
            client(config).err().map(|error| error.to_string())
        }
        Err(error) => Some(error.to_string()),
    };
    let Some(error) = error else { return };
    match known {
        Some(known) => {
            let text = String::from_utf8_lossy(input);
            let quoted = secrets(&known).into_iter().find(|secret| {
                secret.len() >= MIN_SECRET && text.matches(secret).count() == 1 && error.contains(secret)
            });
            assert!(quoted.is_none(), "{error}");
        }
        None => assert!(error.len() <= MAX_DEFECT, "{error}"),
    }
}

/// Returns the tokens, passwords and keys of all users.
fn secrets(known: &Kubeconfig) -> Vec<&str> {
    let users = known.auth_infos.iter().filter_map(|user| user.auth_info.as_ref());
    let secrets = users.flat_map(|user| [&user.token, &user.password, &user.client_key_data]);
    secrets.flatten().map(SecretString::expose_secret).collect()
}

fn check(config: &Config) {
    let login = &config.auth_info;
    assert!(login.exec.is_none() && login.auth_provider.is_none(), "it runs a program");
    let files = [&login.token_file, &login.client_certificate, &login.client_key];
    assert!(files.into_iter().flatten().all(String::is_empty), "it reads a file");
    let is_secured =
        config.cluster_url.scheme_str().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    let has_login = login.token.is_some() || login.username.is_some() || login.password.is_some();
    assert!(is_secured || !has_login, "it sends a login to {}", config.cluster_url);
}
