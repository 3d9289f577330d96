//! Credential files, from which this process gets its cloud identity.

use std::fs;

use serde_json::{Value, json};
use tagboat::error::chain;
use tempfile::TempDir;

use super::{ECR, GAR, KEYS, after, clouds, log_in};
use crate::support::recording::Recording;

const CREDENTIALS: &str = "\
[default]
aws_access_key_id = AKIDEXAMPLE
aws_secret_access_key = wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY
";

const CONFIG: &str = "\
[profile token]
role_arn = arn:aws:iam::012345678901:role/tagboat
web_identity_token_file = TOKEN
[profile instance]
role_arn = arn:aws:iam::012345678901:role/reader
credential_source = Ec2InstanceMetadata
[profile reader]
role_arn = arn:aws:iam::012345678901:role/reader
source_profile = default
[profile browser]
sso_session = corporation
";

/// A home directory with files in it.
fn home(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

#[tokio::test]
async fn profiles_of_aws_lead_to_a_password() {
    let directory =
        home(&[(".aws/credentials", CREDENTIALS), ("plain", CREDENTIALS), ("token", "jwt of the pod\n")]);
    let config = CONFIG.replace("TOKEN", &directory.path().join("token").display().to_string());
    fs::write(directory.path().join("config"), config).unwrap();
    let (home, plain, config) = (
        directory.path().display().to_string(),
        directory.path().join("plain").display().to_string(),
        directory.path().join("config").display().to_string(),
    );
    let own = ("HOME", home.as_str());
    for (names, variables) in [
        (&["aws-token"][..], &[own][..]),
        (&["aws-token"], &[("AWS_SHARED_CREDENTIALS_FILE", plain.as_str())]),
        (
            &["aws-role", "aws-token-with-session"],
            &[("AWS_CONFIG_FILE", config.as_str()), ("AWS_PROFILE", "token")],
        ),
        // The environment has precedence over files, and files over the machine.
        (&["aws-token"], &[own, ("AWS_PROFILE", "none"), KEYS[0], KEYS[1]]),
        (&["aws-token"], &[own, ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v1/credentials")]),
        (&["aws-instance", "aws-token-with-session"], &[("HOME", "/nonexistent")]),
    ] {
        let recording = Recording::replay(names);
        let found = log_in(&clouds(&recording, variables), ECR, after(0)).await;
        recording.replayed();
        assert_eq!(found.unwrap_or_else(|error| panic!("{names:?}: {}", chain(&error))).1, "hunter2");
        recording.finish();
    }
}

#[tokio::test]
async fn a_profile_that_leads_nowhere_is_named() {
    let directory = home(&[("config", CONFIG)]);
    let config = directory.path().join("config").display().to_string();
    for (profile, words) in [
        ("none", "the profile 'none' of AWS's shared files does not exist"),
        ("token", "the file TOKEN cannot be read: No such file or directory (os error 2)"),
        (
            "instance",
            "the profile 'instance' of AWS's shared files requires the keys of the machine (credential_source), which is not \
             supported: export the keys into the environment, as `aws configure export-credentials --profile instance --format env` does",
        ),
        (
            "reader",
            "the profile 'reader' of AWS's shared files requires the keys of another profile (source_profile), which is not \
             supported: export the keys into the environment, as `aws configure export-credentials --profile reader --format env` does",
        ),
        (
            "browser",
            "the profile 'browser' of AWS's shared files requires a login in a browser (sso_session), which is not \
             supported: export the keys into the environment, as `aws configure export-credentials --profile browser --format env` does",
        ),
    ] {
        let recording = Recording::replay(&[]);
        let variables = [("AWS_CONFIG_FILE", config.as_str()), ("AWS_PROFILE", profile)];
        let error = log_in(&clouds(&recording, &variables), ECR, after(0)).await.unwrap_err();
        assert_eq!(chain(&error), format!("cannot log in at AWS: {words}"));
        recording.finish();
    }
}

fn key() -> Value {
    json!({
        "type": "service_account",
        "client_email": "puller@project-1.iam.gserviceaccount.com",
        "private_key_id": "key-1",
        "private_key": include_str!("../../../testdata/clouds/google-key.pem"),
    })
}

fn person() -> Value {
    json!({
        "type": "authorized_user",
        "client_id": "gcloud.apps.googleusercontent.com",
        "client_secret": "hunter5",
        "refresh_token": "hunter6",
    })
}

/// The configuration of an external account, whose token comes from a file.
fn external(recording: &Recording, file: &str, format: &Value) -> Value {
    let account =
        "v1/projects/-/serviceAccounts/puller@project-1.iam.gserviceaccount.com:generateAccessToken";
    json!({
        "type": "external_account",
        "audience": "//iam.googleapis.com/projects/12/locations/global/workloadIdentityPools/pool/providers/cluster",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": recording.front.url("/v1/token"),
        "service_account_impersonation_url": recording.front.url(&format!("/{account}")),
        "credential_source": {"file": file, "format": format},
    })
}

#[tokio::test]
async fn credentials_of_google_lead_to_a_password() {
    let directory = home(&[("text", "jwt of the file\n"), ("json", "{\"token\": \"jwt of the file\"}")]);
    let path = |name: &str| directory.path().join(name).display().to_string();
    let text = path("text");
    for (names, content) in [
        (&["google-key"][..], &(|_: &Recording| key()) as &dyn Fn(&Recording) -> Value),
        (&["google-person"], &|_| person()),
        (&["google-file-exchange", "google-act"], &|recording| external(recording, &text, &json!({}))),
        (&["google-file-exchange", "google-act"], &|recording| {
            let format = json!({"type": "json", "subject_token_field_name": "token"});
            external(recording, &path("json"), &format)
        }),
    ] {
        let recording = Recording::replay(names);
        let credentials = content(&recording).to_string();
        fs::write(directory.path().join("credentials"), &credentials).unwrap();
        let home = home(&[(".config/gcloud/application_default_credentials.json", &credentials)]);
        let named = ("GOOGLE_APPLICATION_CREDENTIALS", path("credentials"));
        let at_home = ("HOME", home.path().display().to_string());
        let nothing = Recording::replay(names);
        for (recording, (name, value)) in [(&recording, named), (&nothing, at_home)] {
            // An address in the file is replaced by that of the first server.
            if names.len() > 1 && name == "HOME" {
                continue;
            }
            let found = log_in(&clouds(recording, &[(name, value.as_str())]), GAR, after(0)).await;
            recording.replayed();
            assert_eq!(found.unwrap_or_else(|error| panic!("{names:?}: {}", chain(&error))).1, "hunter2");
        }
        recording.finish();
    }
}

#[tokio::test]
async fn credentials_that_cannot_be_used_are_named_and_nothing_of_them_is_shown() {
    let recording = Recording::replay(&[]);
    let mut unlocked = key();
    unlocked["private_key"] = json!("-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n");
    let mut plain = external(&recording, "/nonexistent/token", &json!({}));
    plain["token_url"] = json!("http://sts.example.com/v1/token");
    let mut elsewhere = plain.clone();
    elsewhere["credential_source"] = json!({"url": "http://169.254.169.254/"});
    let mut half = person();
    half.as_object_mut().unwrap().remove("client_id");
    for (content, words) in [
        ("{\"type\": hunter2".to_owned(), "is not JSON with Google credentials and their type"),
        ("[]".to_owned(), "is not JSON with Google credentials and their type"),
        (
            json!({"type": "impersonated_service_account", "key": "hunter2"}).to_string(),
            "has credentials of the type 'impersonated_service_account': use service_account, authorized_user or \
             external_account",
        ),
        (half.to_string(), "lacks a member that credentials of its type require"),
        (unlocked.to_string(), "has a private_key that is not an RSA key in PEM"),
        (elsewhere.to_string(), "has a credential_source that is not a file; only files are supported"),
    ] {
        let directory = home(&[("credentials", &content)]);
        let path = directory.path().join("credentials").display().to_string();
        let variables = [("GOOGLE_APPLICATION_CREDENTIALS", path.as_str())];
        let error = log_in(&clouds(&recording, &variables), GAR, after(0)).await.unwrap_err();
        assert_eq!(chain(&error), format!("cannot log in at GCP: the file {path} {words}"));
    }
    let token = home(&[("token", "jwt of the file")]);
    plain["credential_source"]["file"] = json!(token.path().join("token"));
    let directory = home(&[("credentials", &plain.to_string())]);
    let path = directory.path().join("credentials").display().to_string();
    for (path, words) in [
        (path.as_str(), "has the address \"http://sts.example.com/v1/token\", which is not an https URL"),
        ("/nonexistent/credentials", "cannot be read: No such file or directory (os error 2)"),
    ] {
        let variables = [("GOOGLE_APPLICATION_CREDENTIALS", path)];
        let error = log_in(&clouds(&recording, &variables), GAR, after(0)).await.unwrap_err();
        assert_eq!(chain(&error), format!("cannot log in at GCP: the file {path} {words}"));
    }
    recording.finish();
}
