//! Certificates and proxies of objects on the way to the API of a forge.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::served::GITHUB;
use crate::pull_requests::fleet::{action, automations_text};
use crate::support::certificates::Authority;
use crate::support::content::file;
use crate::support::fleet::{IMAGE, tag_line};
use crate::support::forges::gitlab;
use crate::support::forges::hub::{Call, GIT_USER, Hub, TOKEN};
use crate::support::http_front::Front;
use crate::support::manifests::policy;
use crate::support::program::{Run, run, tagboat};
use crate::support::proxy_host::ProxyHost;
use crate::support::ssh_host::SshHost;

/// Runs an automation that delivers by pull request, with a GitRepository and Secrets.
fn run_with(root: &TempDir, source: &Value, secrets: &[(&str, Value)]) -> Run {
    let mut text = policy("default", "podinfo", IMAGE, "5.0.3");
    for (name, data) in secrets {
        let metadata = json!({"namespace": "default", "name": name});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
        text += &format!("---\n{secret}\n");
    }
    text += &format!("---\n{source}\n{}", automations_text(&[("fleet", json!({}))]));
    let manifests = root.path().join("manifests");
    fs::create_dir_all(&manifests).unwrap();
    fs::write(manifests.join("manifests.yaml"), text).unwrap();
    let mut command = tagboat();
    command.arg("run").arg(manifests).args(["--output", "json", "--state"]);
    run(command.arg(root.path().join("state")))
}

fn source(url: &str, annotations: &Value, more: &Value) -> Value {
    let mut spec = json!({"interval": "1m", "url": url, "ref": {"branch": "main"}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"namespace": "default", "name": "fleet", "annotations": annotations}, "spec": spec,
    })
}

/// With an SSH URL there was no way to give the certificate of an API.
#[test]
fn an_api_behind_a_private_authority_is_reached_with_an_ssh_url() {
    let (hub, authority, ssh) = (Hub::new(), Authority::new(), SshHost::start());
    hub.repository.commit("main", "Begin", &[file("app.yaml", tag_line("4.0.6"))]);
    let serving = Arc::clone(&hub);
    let front = Front::secured(None, authority.server(false), move |request| {
        let mut call = Call::of(request);
        // The path of a repository over SSH is that of its directory.
        call.path[3] = gitlab::PROJECT.to_owned();
        gitlab::respond(&serving, &call)
    });
    let annotations = json!({
        "tagboat.dev/forge": "gitlab", "tagboat.dev/forge-url": front.url("/api/v4"),
        "tagboat.dev/forge-secret": "forge",
    });
    let source =
        source(&ssh.url(hub.repository.path()), &annotations, &json!({"secretRef": {"name": "ssh"}}));
    let certificate = fs::read_to_string(authority.certificate_file()).unwrap();
    let root = tempfile::tempdir().unwrap();
    let secrets = |of_forge: bool, of_git: bool| {
        let mut forge = json!({"token": TOKEN});
        let mut git = json!({"identity": ssh.key().private(), "known_hosts": ssh.known_hosts()});
        for (secret, _) in [(&mut forge, of_forge), (&mut git, of_git)].into_iter().filter(|(_, has)| *has) {
            secret["ca.crt"] = certificate.clone().into();
        }
        [("forge", forge), ("ssh", git)]
    };
    let failed = run_with(&root, &source, &secrets(false, false));
    assert_eq!(failed.status, Some(1), "{failed:?}");
    assert!(
        failed.output.contains("cannot be reached") || failed.errors.contains("cannot be reached"),
        "{failed:?}"
    );
    assert!(hub.pulls().is_empty());
    for (of_forge, of_git, expected) in [(true, false, "opened"), (false, true, "kept")] {
        let run = run_with(&root, &source, &secrets(of_forge, of_git));
        assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{expected}: {run:?}");
        assert_eq!(action(&run.json()["automations"][0]), expected);
    }
}

#[test]
fn the_proxy_of_the_repository_is_used_for_the_api() {
    let (hub, proxy, root) = (Hub::new(), ProxyHost::start(), tempfile::tempdir().unwrap());
    hub.repository.commit("main", "Begin", &[file("app.yaml", tag_line("4.0.6"))]);
    let (front, _git) = hub.serve_with_git(GITHUB.path, GITHUB.respond);
    let url = front.url(&format!("/{}", GITHUB.path));
    let more = json!({"secretRef": {"name": "git"}, "proxySecretRef": {"name": "proxy"}});
    let source = source(&url, &json!({"tagboat.dev/forge": "github"}), &more);
    let secrets = [
        ("git", json!({"username": GIT_USER, "password": TOKEN})),
        ("proxy", json!({"address": proxy.url()})),
    ];
    let run = run_with(&root, &source, &secrets);
    assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{run:?}");
    assert_eq!(action(&run.json()["automations"][0]), "opened");
    let lines: Vec<String> = proxy.requests().into_iter().map(|request| request.line).collect();
    let calls = front.requests().into_iter().filter(|request| request.path.starts_with("/api/v3/")).count();
    let by_proxy = lines.iter().filter(|line| line.contains("/api/v3/")).count();
    assert!(calls > 0 && by_proxy == calls, "{calls}: {lines:#?}");
}
