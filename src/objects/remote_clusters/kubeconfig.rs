//! A kubeconfig without references to programs and files.
//!
//! A program would run with the rights of the controller, and a file is one of its own pod. So all data stand in the
//! kubeconfig: tokens, certificates and keys.

use kube::Config;
use kube::config::{Kubeconfig, KubeconfigError as InvalidKubeconfig};
use serde_saphyr::Error as YamlError;

/// The kubeconfig of a cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// It is no YAML, or has fields of other types.
    #[error("its kubeconfig is not valid: {defect}")]
    Invalid {
        /// The defect and its position, without the text, which has secrets.
        defect: String,
    },
    /// A credential plugin would run a program.
    #[error(
        "its kubeconfig has an exec credential plugin, which is refused: give a token or a client certificate"
    )]
    Exec,
    /// A login of a provider is not supported.
    #[error("its kubeconfig has an auth-provider, which is refused: give a token or a client certificate")]
    AuthProvider,
    /// A field names a file.
    #[error("its kubeconfig refers to a file by {field}, which is refused: give the data instead")]
    File {
        /// The field.
        field: &'static str,
    },
    /// Anyone on the way could read the login.
    #[error("its kubeconfig has a login for a server without TLS, which is refused: write https")]
    WithoutTls,
    /// It has no usable context.
    #[error("its kubeconfig cannot be used: {message}")]
    Unusable {
        /// The message, which has no secrets.
        message: String,
    },
}

/// Parses a kubeconfig; its current context counts.
///
/// # Errors
///
/// If it is invalid, refers to a program or a file, or would send a login without TLS.
pub fn parse(text: &[u8]) -> Result<Config, KubeconfigError> {
    let invalid = |defect| KubeconfigError::Invalid { defect };
    let text = std::str::from_utf8(text).map_err(|_| invalid("it is not UTF-8".to_owned()))?;
    let mut kubeconfig = Kubeconfig::from_yaml(text).map_err(|error| invalid(defect(&error)))?;
    keep_current(&mut kubeconfig);
    refuse(&kubeconfig)?;
    if let Some(message) = undefined_user(&kubeconfig, None) {
        return Err(KubeconfigError::Unusable { message });
    }
    Config::try_from(kubeconfig).map_err(|error| KubeconfigError::Unusable { message: error.to_string() })
}

/// Returns the defect of a kubeconfig, and its position.
///
/// The message of the parser is not used, because it quotes the text.
fn defect(error: &InvalidKubeconfig) -> String {
    let InvalidKubeconfig::Parse(error) = error else { return error.to_string() };
    let position = error.location().map_or_else(String::new, |location| {
        format!(" at line {}, column {}", location.line(), location.column())
    });
    match error.without_snippet() {
        YamlError::SerdeMissingField { field, .. } => format!("the field {field} is missing{position}"),
        YamlError::DuplicateMappingKey { .. } => format!("a key is there twice{position}"),
        YamlError::UnknownAnchor { .. } => format!("an alias has no anchor{position}"),
        YamlError::SerdeInvalidType { .. }
        | YamlError::SerdeInvalidValue { .. }
        | YamlError::InvalidScalar { .. }
        | YamlError::NullIntoString { .. }
        | YamlError::Unexpected { .. } => format!("a value has another type than its field{position}"),
        _ => format!("it is no YAML{position}"),
    }
}

/// Returns the defect of a context that names a user which the kubeconfig lacks.
///
/// The client would send its requests without a login. `context` is the current one by default.
pub fn undefined_user(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let named = kubeconfig.contexts.iter().find(|context| context.name == name)?;
    let user = named.context.as_ref()?.user.as_ref().filter(|user| !user.is_empty())?;
    let is_defined = kubeconfig.auth_infos.iter().any(|known| known.name == *user);
    (!is_defined).then(|| format!("the context {name} has the user {user}, which is not in users"))
}

/// Removes the clusters and users that the current context does not have.
fn keep_current(kubeconfig: &mut Kubeconfig) {
    let current = kubeconfig.current_context.clone();
    kubeconfig.contexts.retain(|context| Some(&context.name) == current.as_ref());
    let contexts = || kubeconfig.contexts.iter().filter_map(|context| context.context.as_ref());
    let clusters: Vec<String> = contexts().map(|context| context.cluster.clone()).collect();
    let users: Vec<String> = contexts().filter_map(|context| context.user.clone()).collect();
    kubeconfig.clusters.retain(|cluster| clusters.contains(&cluster.name));
    kubeconfig.auth_infos.retain(|user| users.contains(&user.name));
}

fn refuse(kubeconfig: &Kubeconfig) -> Result<(), KubeconfigError> {
    let mut fields: Vec<(&'static str, &Option<String>)> = Vec::new();
    for user in kubeconfig.auth_infos.iter().filter_map(|user| user.auth_info.as_ref()) {
        if user.exec.is_some() {
            return Err(KubeconfigError::Exec);
        }
        if user.auth_provider.is_some() {
            return Err(KubeconfigError::AuthProvider);
        }
        fields.extend([
            ("tokenFile", &user.token_file),
            ("client-certificate", &user.client_certificate),
            ("client-key", &user.client_key),
        ]);
    }
    for cluster in kubeconfig.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref()) {
        fields.push(("certificate-authority", &cluster.certificate_authority));
    }
    let has_login = kubeconfig
        .auth_infos
        .iter()
        .filter_map(|user| user.auth_info.as_ref())
        .any(|user| user.token.is_some() || user.username.is_some() || user.password.is_some());
    let servers =
        kubeconfig.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref()?.server.as_deref());
    if has_login && servers.into_iter().any(|server| !server.to_ascii_lowercase().starts_with("https://")) {
        return Err(KubeconfigError::WithoutTls);
    }
    match fields.into_iter().find(|(_, file)| file.as_ref().is_some_and(|file| !file.is_empty())) {
        Some((field, _)) => Err(KubeconfigError::File { field }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             contexts: [{{name: a, context: {{cluster: a, user: a}}}}, {{name: b, context: {{cluster: a, user: b}}}}]\n\
             clusters: [{{name: a, cluster: {{server: 'https://edge.example:6443'{cluster}}}}}]\n\
             users: [{{name: a, user: {{{user}}}}}, {{name: b, user: {{exec: {{command: aws}}}}}}]\n"
        )
    }

    #[test]
    fn a_kubeconfig_has_all_data_of_its_current_context() {
        let config = parse(kubeconfig("", "token: s3cret").as_bytes()).unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://edge.example:6443/");
        assert!(config.auth_info.exec.is_none() && config.auth_info.token.is_some());
    }

    /// Requests without a login were refused one by one, and the cluster counted as up.
    #[test]
    fn a_context_with_an_undefined_user_is_refused() {
        let text = kubeconfig("", "token: s3cret").replace("users: [{name: a,", "users: [{name: c,");
        let error = parse(text.as_bytes()).map(drop).unwrap_err().to_string();
        assert_eq!(
            error,
            "its kubeconfig cannot be used: the context a has the user a, which is not in users"
        );
        parse(text.replace(", user: a}", "}").as_bytes()).unwrap();
    }

    #[test]
    fn programs_and_files_are_refused() {
        let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, args: [eks]}";
        for (cluster, user, expected) in [
            ("", exec, "its kubeconfig has an exec credential plugin, which is refused"),
            ("", "auth-provider: {name: gcp}", "its kubeconfig has an auth-provider, which is refused"),
            ("", "tokenFile: /token", "its kubeconfig refers to a file by tokenFile, which is refused"),
            ("", "client-certificate: a.crt", "its kubeconfig refers to a file by client-certificate"),
            ("", "client-key: a.key", "its kubeconfig refers to a file by client-key"),
            (
                ", certificate-authority: ca.crt",
                "",
                "its kubeconfig refers to a file by certificate-authority",
            ),
            (", certificate-authority-data: '%'", "", "its kubeconfig cannot be used: "),
        ] {
            let error = parse(kubeconfig(cluster, user).as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_login_without_tls_is_refused() {
        let parse_plain =
            |user: &str| parse(kubeconfig("", user).replace("https://", "http://").as_bytes()).map(drop);
        for user in ["token: s3cret", "username: a, password: s3cret"] {
            let error = parse_plain(user).unwrap_err().to_string();
            assert!(error.contains("without TLS") && !error.contains("s3cret"), "{error}");
        }
        // A proxy in the same pod, for example, which has the login.
        parse_plain("").unwrap();
    }

    #[test]
    fn the_defect_of_an_invalid_kubeconfig_is_named_and_its_text_is_not() {
        for (text, expected) in [
            ("users:\n- name: a\n  user: {token: s3cret", "it is no YAML at line "),
            ("users: [{name: 's3cret", "it is no YAML at line "),
            ("a: 1\nusers: s3cret", "a value has another type than its field at line 2, column 8"),
            (
                "users:\n- name: a\n  user: {token: [s3cret]}",
                "a value has another type than its field at line 3, column ",
            ),
            (
                "users:\n- name: a\n  user: {exec: {args: s3cret}}",
                "a value has another type than its field at line 3",
            ),
            ("users:\n- user: {token: s3cret}", "the field name is missing at line 2, column "),
            ("s3cret: 1\ns3cret: 2", "a key is there twice at line 2, column 1"),
            ("a: *s3cret", "an alias has no anchor at line 1, column "),
        ] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("its kubeconfig is not valid: {expected}")),
                "{text}: {error}"
            );
            assert!(!error.contains("s3c"), "{error}");
        }
        for text in ["a: &a [*a, s3cret]", "current-context: none", "", "kind: s3cret\n---\nkind: Config"] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
        let error = parse(&[0xff]).unwrap_err().to_string();
        assert_eq!(error, "its kubeconfig is not valid: it is not UTF-8");
    }
}
