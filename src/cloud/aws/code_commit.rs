//! Credentials for git repositories of AWS CodeCommit.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use url::Url;

use super::credentials;
use super::region::AwsRegion;
use super::signature::{AwsCredentials, git_signature};
use crate::cloud::LoginError;
use crate::cloud::cache::Expiring;
use crate::cloud::context::LoginContext;
use crate::cloud::pattern::captures;
use crate::secrets::Secret;

/// The pattern of CodeCommit's hosts.
const HOSTS: &str = r"^git-codecommit(?:-fips)?\.([a-z0-9-]{1,100})\.(amazonaws\.com(?:\.cn)?)$";

/// A git repository of CodeCommit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cloud) struct CodeCommit {
    region: AwsRegion,
    host: String,
    path: String,
}

impl CodeCommit {
    /// Parses the URL of a repository.
    pub(in crate::cloud) fn parse(url: &Url) -> Result<Self, LoginError> {
        let host = url.host_str().unwrap_or_default();
        let must = "be https://git-codecommit.REGION.amazonaws.com/v1/repos/NAME, perhaps with -fips, or .cn at the end of the host";
        let invalid = || LoginError::git_url("aws", url, must);
        let found = captures(HOSTS, host).ok_or_else(invalid)?;
        if url.scheme() != "https" || url.port().is_some() {
            return Err(invalid());
        }
        let part = |number: usize| found.get(number).map_or("", |part| &host[part.range()]).to_owned();
        let region = AwsRegion { name: part(1), domain: part(2) };
        Ok(Self { region, host: host.to_owned(), path: url.path().to_owned() })
    }

    /// Finds the credentials of the identity that logs in.
    pub(in crate::cloud) async fn find(
        &self,
        context: LoginContext<'_>,
    ) -> Result<Expiring<AwsCredentials>, LoginError> {
        credentials::find(&self.region, context).await
    }

    /// Returns user and password, which are valid for 15 minutes.
    pub(in crate::cloud) fn login(&self, credentials: &AwsCredentials, now: Timestamp) -> (Secret, Secret) {
        let date = now.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%S").to_string();
        let signature = git_signature(credentials, [&self.host, &self.path], &date, &self.region.name);
        let user = match &credentials.session {
            Some(session) => Secret::new([credentials.id.as_bytes(), b"%", session.expose()].concat()),
            None => Secret::new(credentials.id.as_bytes()),
        };
        (user, Secret::new(format!("{date}Z{signature}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<CodeCommit, LoginError> {
        CodeCommit::parse(&Url::parse(url).unwrap())
    }

    fn text(secret: &Secret) -> String {
        String::from_utf8(secret.expose().to_vec()).unwrap()
    }

    /// The first signature was computed by AWS's Python library.
    #[test]
    fn the_password_is_the_time_and_a_signature() {
        let credentials = |session: Option<&str>| AwsCredentials {
            id: "AKIDEXAMPLE".to_owned(),
            secret: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session: session.map(Secret::new),
        };
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let repository = parse("https://git-codecommit.us-east-1.amazonaws.com/v1/repos/fleet").unwrap();
        let password = "20260102T030405Z2a16863c47a4a34e46ec9af09d3da90145e1695a6b401d691737ab4b7e886d20";
        for (session, user) in [(None, "AKIDEXAMPLE"), (Some("s3ssion"), "AKIDEXAMPLE%s3ssion")] {
            let (found, secret) = repository.login(&credentials(session), now);
            assert_eq!((text(&found).as_str(), text(&secret).as_str()), (user, password));
        }
    }

    /// A row that `hack/oracle/code_commit` wrote with AWS's Python library.
    #[derive(serde::Deserialize)]
    struct Row {
        id: String,
        secret: Secret,
        url: String,
        time: Timestamp,
        password: String,
    }

    #[test]
    fn passwords_are_those_of_the_library_of_aws() {
        let rows = include_str!("../../../testdata/clouds/code-commit.json");
        let rows: Vec<Row> = serde_json::from_str(rows).unwrap();
        assert!(rows.len() > 10);
        for Row { id, secret, url, time, password } in rows {
            let credentials = AwsCredentials { id, secret, session: None };
            assert_eq!(text(&parse(&url).unwrap().login(&credentials, time).1), password, "{url}");
        }
    }

    #[test]
    fn only_hosts_of_code_commit_get_a_signature() {
        for (url, region, domain) in [
            ("https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/a", "eu-west-1", "amazonaws.com"),
            (
                "https://git-codecommit-fips.us-gov-west-1.amazonaws.com/v1/repos/a",
                "us-gov-west-1",
                "amazonaws.com",
            ),
            (
                "https://git-codecommit.cn-north-1.amazonaws.com.cn/v1/repos/a",
                "cn-north-1",
                "amazonaws.com.cn",
            ),
        ] {
            let region = AwsRegion { name: region.to_owned(), domain: domain.to_owned() };
            assert_eq!(parse(url).unwrap().region, region, "{url}");
        }
        for url in [
            "http://git-codecommit.eu-west-1.amazonaws.com/v1/repos/a",
            "https://git-codecommit.eu-west-1.amazonaws.com:8443/v1/repos/a",
            "https://git-codecommit.eu-west-1.amazonaws.com.evil.example/v1/repos/a",
            "https://evil.example/git-codecommit.eu-west-1.amazonaws.com",
            "https://a.git-codecommit.eu-west-1.amazonaws.com/v1/repos/a",
        ] {
            let message = parse(url).unwrap_err().to_string();
            assert!(message.starts_with("the provider aws cannot log in at 'http"), "{message}");
        }
    }
}
