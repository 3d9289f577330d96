//! Service accounts log in at clouds, each by its own annotations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use tagboat::error::chain;
use tagboat::registry::{AccountError, Accounts, CloudAccount, CloudIdentity, LoginError};
use tagboat::secrets::Secret;

use super::{ACR, ECR, GAR, KEYS, after, clouds, log_in, log_in_as};
use crate::support::recording::Recording;

const AWS: (&str, &str) = ("eks.amazonaws.com/role-arn", "arn:aws:iam::012345678901:role/web");
pub(super) const AZURE: [(&str, &str); 2] =
    [("azure.workload.identity/tenant-id", "tenant-2"), ("azure.workload.identity/client-id", "client-2")];
const POOL: (&str, &str) = (
    "gcp.auth.fluxcd.io/workload-identity-provider",
    "projects/12/locations/global/workloadIdentityPools/pool/providers/cluster",
);
const ACCOUNT: (&str, &str) = ("iam.gke.io/gcp-service-account", "puller@project-1.iam.gserviceaccount.com");

/// A cluster that issues every token, and records the accounts.
#[derive(Debug, Default)]
pub(super) struct RecordingIssuer(Mutex<Vec<String>>);

impl Accounts for RecordingIssuer {
    fn annotations<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<String, String>, AccountError>> {
        let missing = AccountError::Missing { namespace: namespace.to_owned(), name: name.to_owned() };
        ready(Err(missing)).boxed()
    }

    fn token<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        audience: &'a str,
    ) -> BoxFuture<'a, Result<Secret, AccountError>> {
        let token = format!("jwt of {namespace}/{name} for {audience}");
        self.0.lock().unwrap().push(token.clone());
        let answer = match name {
            "stranger" => Err(AccountError::Cluster { message: "the API server says no".to_owned() }),
            _ => Ok(Secret::new(token)),
        };
        ready(answer).boxed()
    }
}

pub(super) fn account(
    cluster: &Arc<RecordingIssuer>,
    name: &str,
    annotations: &[(&str, &str)],
) -> CloudIdentity {
    let annotations =
        annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let (namespace, name) = name.split_once('/').unwrap();
    CloudIdentity::Account(CloudAccount {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        annotations,
        accounts: cluster.clone(),
    })
}

#[tokio::test]
async fn an_account_logs_in_by_its_annotations_and_not_as_the_controller() {
    let cluster = Arc::new(RecordingIssuer::default());
    for (names, annotations, image, password) in [
        (&["aws-account", "aws-token-with-session"][..], &[AWS][..], ECR, "hunter2"),
        (&["azure-account", "azure-exchange"], &AZURE, ACR, "eyJhbGciOiJSUzI1NiJ9."),
        (&["google-account"], &[POOL], GAR, "hunter2"),
        (&["google-account-first", "google-act"], &[POOL, ACCOUNT], GAR, "hunter2"),
        (&["google-gke", "google-gke-exchange"], &[], GAR, "hunter2"),
    ] {
        let recording = Recording::replay(names);
        // The identity of the controller is not used.
        let known = clouds(&recording, &KEYS);
        let identity = account(&cluster, "apps/puller", annotations);
        let found = log_in_as(&known, identity, image, after(0)).await;
        recording.replayed();
        let (_, found) = found.unwrap_or_else(|error| panic!("{names:?}: {}", chain(&error)));
        assert!(found.starts_with(password), "{names:?}");
        recording.finish();
    }
    let audiences: Vec<String> = cluster.0.lock().unwrap().clone();
    let pool = format!("jwt of apps/puller for //iam.googleapis.com/{}", POOL.1);
    assert_eq!(
        audiences,
        [
            "jwt of apps/puller for sts.amazonaws.com",
            "jwt of apps/puller for api://AzureADTokenExchange",
            &pool,
            &pool,
            "jwt of apps/puller for project-1.svc.id.goog",
        ]
    );
}

#[tokio::test]
async fn no_account_gets_the_credentials_of_another() {
    let cluster = Arc::new(RecordingIssuer::default());
    let refused = ["aws-account-refused"; 4];
    let names =
        [&["aws-account", "aws-token-with-session"][..], &refused, &["aws-token-at-any-time"]].concat();
    let recording = Recording::replay(&names);
    let known = clouds(&recording, &KEYS);
    for seconds in [0, 10, 1000] {
        let puller = account(&cluster, "apps/puller", &[AWS]);
        log_in_as(&known, puller, ECR, after(seconds)).await.unwrap();
    }
    assert_eq!(recording.replayed(), 2);
    assert_eq!(cluster.0.lock().unwrap().len(), 1);
    // Another namespace, another name, another role, another annotation: each needs a request.
    let role = ("eks.amazonaws.com/role-arn", "arn:aws:iam::012345678901:role/other");
    for other in [
        account(&cluster, "other/puller", &[AWS]),
        account(&cluster, "apps/other", &[AWS]),
        account(&cluster, "apps/puller", &[role]),
        account(&cluster, "apps/puller", &[AWS, ("note", "new")]),
    ] {
        let error = log_in_as(&known, other, ECR, after(1000)).await.unwrap_err();
        assert_eq!(
            chain(&error),
            "cannot log in at AWS: the role of the service account (AssumeRoleWithWebIdentity) is refused with status 403: \
             AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity"
        );
    }
    assert_eq!(cluster.0.lock().unwrap().len(), 5);
    // The controller itself does, too.
    log_in(&known, ECR, after(1000)).await.unwrap();
    recording.finish();
}

#[tokio::test]
async fn an_account_that_cannot_log_in_reports_the_reason() {
    let cluster = Arc::new(RecordingIssuer::default());
    let begin = |cloud: &str| {
        format!("cannot log in at {cloud} as the service account 'apps/puller': its annotation ")
    };
    for (annotations, image, words) in [
        (&[][..], ECR, begin("AWS") + "eks.amazonaws.com/role-arn is missing"),
        (&[(AWS.0, "arn:aws:iam::x:role/web")], ECR, {
            let pattern = r"^arn:aws[\w-]*:iam::[0-9]{1,30}:role/.{1,200}$";
            begin("AWS")
                + "eks.amazonaws.com/role-arn is 'arn:aws:iam::x:role/web', and must match "
                + pattern
        }),
        (&[AZURE[1]], ACR, begin("Azure") + "azure.workload.identity/tenant-id is missing"),
        (&[AZURE[0]], ACR, begin("Azure") + "azure.workload.identity/client-id is missing"),
        (
            &[("azure.workload.identity/tenant-id", "../x"), AZURE[1]],
            ACR,
            begin("Azure") + "azure.workload.identity/tenant-id is not a tenant: write its ID or its name",
        ),
        (&[(POOL.0, "pool")], GAR, {
            let pattern = "^projects/[0-9]{1,30}/locations/global/workloadIdentityPools/[^/]{1,100}/providers/[^/]{1,100}$";
            begin("GCP")
                + "gcp.auth.fluxcd.io/workload-identity-provider is 'pool', and must match "
                + pattern
        }),
        (&[(ACCOUNT.0, "me@example.com"), POOL], GAR, {
            let pattern = r"^[a-zA-Z0-9-]{1,100}@[a-zA-Z0-9.-]{1,200}\.gserviceaccount\.com$";
            begin("GCP") + "iam.gke.io/gcp-service-account is 'me@example.com', and must match " + pattern
        }),
    ] {
        let recording = Recording::replay(&[]);
        let known = clouds(&recording, &KEYS);
        let identity = account(&cluster, "apps/puller", annotations);
        let error = log_in_as(&known, identity, image, after(0)).await.unwrap_err();
        assert_eq!(chain(&error), words);
        recording.finish();
    }
    assert!(cluster.0.lock().unwrap().is_empty());
    let recording = Recording::replay(&[]);
    let identity = account(&cluster, "apps/stranger", &[AWS]);
    let error = log_in_as(&clouds(&recording, &[]), identity, ECR, after(0)).await.unwrap_err();
    assert!(matches!(error, LoginError::NoToken { .. }));
    assert_eq!(
        chain(&error),
        "cannot log in at AWS as the service account 'apps/stranger': the cluster issues no token for it: the API server \
         says no"
    );
    recording.finish();
    let recording = Recording::replay(&["google-account-first", "google-act-refused"]);
    let identity = account(&cluster, "apps/puller", &[POOL, ACCOUNT]);
    let error = log_in_as(&clouds(&recording, &[]), identity, GAR, after(0)).await.unwrap_err();
    assert_eq!(
        chain(&error),
        "cannot log in at GCP: a token of the service account of Google (generateAccessToken) is refused with status 403: \
         PERMISSION_DENIED: Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist)."
    );
    recording.finish();
}
