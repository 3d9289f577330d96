//! `tagboat scan`, and `tagboat explain policy` on the tags of a registry.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::certificates::Authority;
use crate::support::http_front::{Front, Reply};
use crate::support::program::{Run, run, tagboat};
use crate::support::registry::{PASSWORD, Registry, USER};

const MADE: &str = "2020-01-02T03:04:05Z";

/// The program without the caller's proxies, for a registry of this machine.
fn program(arguments: &[&str]) -> Command {
    let mut command = tagboat();
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "DOCKER_CONFIG"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.args(arguments);
    command
}

fn scan(arguments: &[&str]) -> Run {
    run(program(&["scan"]).args(arguments))
}

/// A Secret with a login, in the layout of a volume in a pod.
fn secret(server: &str, password: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    let config = json!({"auths": {server: {"username": USER, "password": password}}});
    fs::write(directory.path().join(".dockerconfigjson"), config.to_string()).unwrap();
    fs::write(directory.path().join("config.json"), config.to_string()).unwrap();
    directory
}

#[test]
fn tags_are_listed_with_their_digests_and_ages() {
    let registry = Registry::start();
    let image = registry.push("app/web", "1.9.0", MADE);
    registry.tag("app/web", "1.9.0", ["1.10.0".to_owned()]);
    let index = registry.push_index("app/web", "multi", &image);
    let name = format!("{}/app/web", registry.address());
    let ended = scan(&[&name, "--output", "json"]).with_status(0);
    assert_eq!(ended.errors, "");
    let document = ended.json();
    let tag = |tag: &str, digest: &str| json!({"tag": tag, "digest": digest, "created": MADE, "error": null});
    let wanted = json!([tag("1.10.0", &image), tag("1.9.0", &image), tag("multi", &index)]);
    assert_eq!(document["tags"], wanted);
    assert_eq!((&document["image"], &document["canonical"]), (&json!(name), &json!(name)));
    assert_eq!(document["count"], 3);
    let text = scan(&[&name]).with_status(0).output;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0..3], [format!("Image: {name}").as_str(), "Tags:  3", ""]);
    assert!(lines[3].starts_with("TAG     DIGEST"), "{text}");
    assert!(lines[4].starts_with(&format!("1.10.0  {image}  ")) && lines[4].ends_with('y'), "{text}");
    let limited = scan(&[&name, "--limit", "1"]).with_status(0);
    assert_eq!(limited.only_error(), "note: 1 of 3 tags are shown; --limit 0 shows all");
    assert_eq!(limited.output.lines().count(), 5);
}

#[test]
fn a_failed_lookup_of_a_tag_does_not_hide_others() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    registry.tag("app/web", "1.0.0", ["1.1.0".to_owned()]);
    let front = Front::before(registry.port(), |request| {
        if request.path.ends_with("manifests/1.1.0") { Reply::status(404) } else { Reply::Forward }
    });
    let name = format!("{}/app/web", front.address());
    let ended = scan(&[&name, "--output", "json"]).with_status(1);
    assert!(ended.only_error().starts_with("error: tag 1.1.0: GET http://"), "{ended:?}");
    let document = ended.json();
    assert!(document["tags"][0]["error"].as_str().unwrap().contains("404 Not Found"));
    assert_eq!(document["tags"][1]["created"], MADE);
}

#[test]
fn logins_come_from_a_secret_or_from_the_user() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let guarded = registry.guarded_by_password();
    let name = format!("{}/app/web", guarded.address());
    let right = secret(&guarded.address(), PASSWORD);
    let directory = right.path().to_str().unwrap();
    scan(&[&name, "--secret", directory]).with_status(0);
    run(program(&["scan", &name, "--registry-login", "user"]).env("DOCKER_CONFIG", directory)).with_status(0);
    // The user's own logins are not used without the option.
    let ended = run(program(&["scan", &name]).env("DOCKER_CONFIG", directory)).with_status(1);
    assert!(ended.only_error().contains("UNAUTHORIZED"), "{ended:?}");
    let advice = "; no login was sent: if the registry requires one, give one with --secret DIR, or log in as yourself with \
                  --registry-login user";
    assert!(ended.only_error().ends_with(advice), "{ended:?}");
    let wrong = secret(&guarded.address(), "hunter3");
    let ended = scan(&[&name, "--secret", wrong.path().to_str().unwrap()]).with_status(1);
    assert!(ended.errors.contains("UNAUTHORIZED") && !ended.errors.contains("hunter3"), "{ended:?}");
    assert!(ended.errors.contains("; a login was sent and refused: check the one in --secret "), "{ended:?}");
    let other = secret("other.example", PASSWORD);
    let ended = scan(&[&name, "--secret", other.path().to_str().unwrap()]).with_status(1);
    assert!(ended.errors.contains("has no login for"), "{ended:?}");
}

#[test]
fn the_identity_at_a_cloud_comes_from_the_environment() {
    let registry = Registry::start();
    let guarded = registry.guarded_by_password();
    let name = format!("{}/app/web", guarded.address());
    for (provider, cloud) in [("aws", "AWS"), ("azure", "Azure"), ("gcp", "GCP")] {
        let ended = scan(&[&name, "--provider", provider]).with_status(1);
        let words = format!("error: invalid {cloud} registry: '{}'. must match ^", guarded.address());
        assert!(ended.only_error().starts_with(&words), "{ended:?}");
    }
    scan(&[&name, "--provider", "github"]).with_status(2);
    scan(&[&name, "--provider", "aws", "--registry-login", "user"]).with_status(2);
}

#[test]
fn a_certificate_authority_of_the_command_line_is_trusted() {
    let authority = Authority::new();
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let front = Front::secured(Some(registry.port()), authority.server(false), |_| Reply::Forward);
    let name = format!("{}/app/web", front.address());
    let file = authority.certificate_file().to_str().unwrap();
    scan(&[&name, "--ca", file]).with_status(0);
    assert!(scan(&[&name]).with_status(1).errors.contains("certificate"));
}

#[test]
fn usage_errors_and_failures_name_the_cause() {
    let registry = Registry::start();
    let nobody = format!("{}/nobody/home", registry.address());
    let empty = TempDir::new().unwrap();
    let empty = empty.path().to_str().unwrap();
    for (arguments, status, words) in [
        (&["https://ghcr.io/app"][..], 2, "should not include URL scheme; remove 'https://'"),
        (&["ghcr.io/org/app:1.0"], 2, "should not include a tag; remove ':1.0'"),
        (&[&nobody], 1, "NAME_UNKNOWN: repository name not known to registry"),
        (&["ghcr.io/org/app@sha256:abc"], 2, "; remove the digest"),
        (&["app@sha256:abc"], 2, "; remove the digest"),
        (&["user@ghcr.io/app"], 2, "; remove the user name, and log in with --secret or --registry-login"),
        (
            &["127.0.0.1:99999/a/b"],
            2,
            "127.0.0.1:99999/a/b: the port 99999 is too large; 65535 is the largest",
        ),
        (&[&nobody, "--ca", "/nowhere"], 2, "--ca /nowhere"),
        (&[&nobody, "--ca", "Cargo.toml"], 2, "--ca Cargo.toml: the file has no certificate in PEM form"),
        (&[&nobody, "--secret", "/nowhere"], 2, "--secret /nowhere"),
        (&[&nobody, "--secret", empty], 2, "there is neither .dockerconfigjson nor .dockercfg"),
    ] {
        let ended = scan(arguments).with_status(status);
        assert!(ended.only_error().contains(words), "{ended:?}");
        assert_eq!(ended.output, "");
    }
}

/// An ImagePolicy on an ImageRepository of this image.
fn manifests(image: &str, more: &str) -> String {
    let kind = "apiVersion: image.toolkit.fluxcd.io/v1\nkind:";
    format!(
        "{kind} ImagePolicy\nmetadata: {{name: web, namespace: apps}}\n\
         spec: {{imageRepositoryRef: {{name: web}}, policy: {{semver: {{range: 1.x}}}}}}\n---\n\
         {kind} ImageRepository\nmetadata: {{name: web, namespace: apps}}\n\
         spec: {{image: {image}, interval: 1m{more}}}\n"
    )
}

fn explained(text: &str, arguments: &[&str]) -> Run {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("manifests.yaml");
    fs::write(&file, text).unwrap();
    let mut command = program(&["explain", "policy", "web", "--output", "json", "--policies"]);
    run(command.arg(file).args(arguments))
}

#[test]
fn a_policy_is_explained_on_the_tags_of_its_registry() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    registry.tag("app/web", "1.0.0", ["1.4.2", "2.0.0", "1.5.0.sig"].map(str::to_owned));
    let image = format!("{}/app/web", registry.address());
    let document = explained(&manifests(&image, ""), &[]).with_status(0).json();
    assert_eq!((&document["latest"], &document["error"]), (&json!("1.4.2"), &Value::Null));
    // Signatures are left out, as by Flux.
    assert_eq!(document["tags"].as_array().unwrap().len(), 3);
    let all = explained(&manifests(&image, ", exclusionList: ['^1\\.4']"), &[]).with_status(0).json();
    assert_eq!(all["latest"], "1.0.0");
    let ended = explained(&manifests(&image, ", exclusionList: ['[=']"), &[]).with_status(1);
    assert!(
        ended.only_error().contains("scan failed: failed to compile regex [=: error parsing regexp"),
        "{ended:?}"
    );
    let unknown = manifests(&format!("{}/nobody/home", registry.address()), "");
    assert!(
        explained(&unknown, &[]).with_status(1).only_error().contains("apps/web: scan failed: GET http://")
    );
}

#[test]
fn the_secrets_of_a_policys_repository_come_from_manifests_or_directories() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let guarded = registry.guarded_by_password();
    let named = manifests(&format!("{}/app/web", guarded.address()), ", secretRef: {name: login}");
    let ended = explained(&named, &[]).with_status(1);
    let missing = "error: ImageRepository apps/web: secrets \"login\" not found; give it as a Secret among the manifests or as \
                   --secret NAMESPACE/NAME=DIR, or log in as yourself with --registry-login user";
    assert_eq!(ended.only_error(), missing);
    let login = secret(&guarded.address(), PASSWORD);
    let directory = login.path().to_str().unwrap();
    explained(&named, &["--secret", &format!("apps/login={directory}")]).with_status(0);
    let config = fs::read_to_string(login.path().join("config.json")).unwrap();
    let secret = format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: login, namespace: apps}}\n\
         type: kubernetes.io/dockerconfigjson\nstringData: {{.dockerconfigjson: '{config}'}}\n"
    );
    explained(&format!("{named}{secret}"), &[]).with_status(0);
    let by_account = manifests(&format!("{}/app/web", guarded.address()), ", serviceAccountName: puller");
    let ended = explained(&by_account, &[]).with_status(1);
    assert_eq!(ended.only_error(), "error: ImageRepository apps/web: serviceaccount 'apps/puller' not found");
    let account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: puller, namespace: apps}\n\
                   imagePullSecrets: [{name: login}]\n";
    let ended = explained(&format!("{by_account}{account}"), &[]).with_status(1);
    let words = "error: ImageRepository apps/web: failed to get image pull secret for serviceaccount 'apps/puller': \
                 secret 'apps/login' not found; give it as a Secret among the manifests";
    assert!(ended.only_error().starts_with(words), "{ended:?}");
    explained(&format!("{by_account}{account}{secret}"), &[]).with_status(0);
    let image = format!("{}/app/web", guarded.address());
    for (spec, words) in [
        (", provider: gcp", "scan failed: invalid GCP registry: '127.0.0.1:"),
        (
            ", provider: gcp, proxySecretRef: {name: proxy}, certSecretRef: {name: tls}",
            "spec.proxySecretRef and a 'ca.crt' of spec.certSecretRef would let the proxy read the controller's cloud credentials",
        ),
    ] {
        let authority = crate::support::certificates::Authority::new();
        let pem = fs::read_to_string(authority.certificate_file()).unwrap().replace('\n', "\n    ");
        let secrets = format!(
            "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: tls, namespace: apps}}\nstringData:\n  ca.crt: |\n    \
             {pem}\n---\napiVersion: v1\nkind: Secret\nmetadata: {{name: proxy, namespace: apps}}\n\
             stringData: {{address: 'http://192.0.2.1:3128'}}\n"
        );
        let ended = explained(&format!("{}{secrets}", manifests(&image, spec)), &[]).with_status(1);
        assert!(
            ended.only_error().starts_with(&format!("error: ImageRepository apps/web: {words}")),
            "{ended:?}"
        );
    }
    let other =
        "---\napiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: apps}\nstringData: {a: b}\n";
    let ended = explained(&format!("{named}{other}"), &[]).with_status(1);
    assert!(ended.errors.contains("secret 'apps/login' has no logins for registries"), "{ended:?}");
    for reference in ["proxySecretRef", "certSecretRef"] {
        let named =
            manifests(&format!("{}/app/web", guarded.address()), &format!(", {reference}: {{name: way}}"));
        assert_eq!(
            explained(&named, &[]).with_status(1).only_error(),
            "error: ImageRepository apps/web: secret 'apps/way' not found; give it as a Secret among the manifests or as \
             --secret NAMESPACE/NAME=DIR"
        );
    }
}
