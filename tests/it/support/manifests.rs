//! Manifests of policies and automations as text.

/// The marker comment for a setter.
pub(crate) fn marker(setter: &str) -> String {
    format!(r##"# {{"$imagepolicy": "{setter}"}}"##)
}

/// A policy `namespace/name` whose latest image is `image:tag`.
pub(crate) fn policy(namespace: &str, name: &str, image: &str, tag: &str) -> String {
    policy_with_status(namespace, name, "", &format!("latestRef: {{name: {image:?}, tag: {tag:?}}}"))
}

/// A policy with labels and a status, both as YAML in one line.
pub(crate) fn policy_with_status(namespace: &str, name: &str, labels: &str, status: &str) -> String {
    format!(
        "---\napiVersion: image.toolkit.fluxcd.io/v1\nkind: ImagePolicy\n\
         metadata: {{name: {name}, namespace: {namespace}, labels: {{{labels}}}}}\n\
         spec: {{imageRepositoryRef: {{name: {name}}}, policy: {{semver: {{range: \"*\"}}}}}}\n\
         status: {{{status}}}\n"
    )
}

/// An automation `namespace/name`; `fields` are further lines of its `spec`, indented by two.
pub(crate) fn automation(namespace: &str, name: &str, fields: &str) -> String {
    format!(
        "---\napiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageUpdateAutomation\n\
         metadata: {{name: {name}, namespace: {namespace}}}\n\
         spec:\n  interval: 10m\n  sourceRef: {{kind: GitRepository, name: fleet}}\n{fields}"
    )
}
