//! Secrets among manifest files: read on demand only, and never shown.

use std::fs;
use std::path::{Path, PathBuf};

use tagboat::error::chain;
use tagboat::objects::manifests::{self, Manifests};

use crate::support::fleet::{Fleet, podinfo, tag_line};

/// A secret value that no message may contain.
const PASSWORD: &str = "hunter2";

fn secret(name: &str, rest: &str) -> String {
    format!("---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: flux}}\n{rest}\n")
}

fn read(path: &Path) -> Manifests {
    manifests::read(&[path.to_owned()], None).unwrap()
}

/// Reads manifests from a new file; returns the file as well.
fn given(text: &str) -> (tempfile::TempDir, PathBuf, Manifests) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("given.yaml");
    fs::write(&file, text).unwrap();
    let manifests = read(&file);
    (directory, file, manifests)
}

#[test]
fn a_secret_is_found_by_namespace_and_name() {
    let text = secret(
        "login",
        "type: Opaque\nimmutable: true\ndata: {password: aHVudGVyMg==}\nstringData: {username: git}",
    );
    let without_namespace = text.replace(", namespace: flux", "");
    let (_directory, _, manifests) = given(&format!("{text}{without_namespace}"));
    for namespace in ["flux", "default"] {
        let values = manifests.secret(namespace, "login").unwrap().unwrap();
        assert_eq!(values["password"].expose(), PASSWORD.as_bytes());
        assert_eq!(values["username"].expose(), b"git");
    }
    assert!(manifests.secret("flux", "other").unwrap().is_none());
    assert!(!format!("{manifests:?}").contains(PASSWORD));
    assert!(manifests.notes.is_empty(), "{:?}", manifests.notes);
}

#[test]
fn an_invalid_secret_is_an_error_when_it_is_used() {
    for (rest, words) in [
        (
            "data: {password: hunter2}",
            "the value of data.password is not base64; plain text belongs in stringData",
        ),
        (
            "stringData: {password: [hunter2]}",
            "the value of stringData.password is not a string; put it in quotes",
        ),
        (
            "data: {password: 'ENC[AES256_GCM,data:hunter2]'}\nsops: {mac: x}",
            "it is encrypted with SOPS, which tagboat does not read; give it decrypted",
        ),
    ] {
        let (_directory, file, manifests) = given(&secret("login", rest));
        let error = manifests.secret("flux", "login").unwrap_err();
        let sentence = format!("{}: Secret flux/login cannot be used: {words}", file.display());
        assert_eq!(chain(&error), sentence);
        assert!(!format!("{manifests:?} {error:?}").contains(PASSWORD));
    }
    let twice = secret("login", "stringData: {a: x}");
    let (_directory, _, manifests) = given(&format!("{twice}{twice}"));
    let error = manifests.secret("flux", "login").unwrap_err();
    assert!(chain(&error).starts_with("Secret flux/login is defined twice"), "{error}");
}

#[test]
fn unused_invalid_secrets_are_not_errors() {
    let fleet = Fleet::small();
    let text = format!(
        "{}{}{}{}{}",
        podinfo(),
        secret("login", "stringData: {password: hunter2}"),
        secret("login", "stringData: {password: hunter2}"),
        secret("bad", "data: {password: hunter2}"),
        secret("sealed", "data: {password: 'ENC[x]'}\nsops: {}"),
    );
    fs::write(fleet.manifests().join("manifests.yaml"), &text).unwrap();
    fs::write(fleet.manifests().join("alone.yaml"), secret("alone", "stringData: {a: hunter2}")).unwrap();
    let run = fleet.update([""; 0]).with_status(0);
    assert_eq!(run.errors, "");
    assert!(!run.output.contains(PASSWORD));
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}

#[test]
fn a_file_of_a_directory_that_only_mentions_secrets_need_not_be_yaml() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write("a-template.yaml", "kind: Secret\n{{- if .Values.on }}\nkind: [ {{ end }}\n");
    write("b-external.yaml", "kind: ExternalSecret\n\ta\n");
    write("c-mention.yaml", "kind: ConfigMap\napiVersion: v1\ndata: {a: 'a Secret'}\n");
    write("d-real.yaml", &secret("login", "stringData: {a: x}"));
    write("e-unnamed.yaml", "kind: Secret\napiVersion: v1\nmetadata: {generateName: x-}\n");
    let manifests = read(directory.path());
    assert!(manifests.secret("flux", "login").unwrap().is_some());
    let path = |name: &str| directory.path().join(name).display().to_string();
    let notes = [
        format!(
            "{}: skipped a Secret without a valid name, which tagboat does not read",
            path("e-unnamed.yaml")
        ),
        format!(
            "skipped 3 files without an object of image.toolkit.fluxcd.io or source.toolkit.fluxcd.io: {}, {}, {}",
            path("a-template.yaml"),
            path("b-external.yaml"),
            path("c-mention.yaml")
        ),
    ];
    assert_eq!(manifests.notes, notes);
}
