//! Signs requests to AWS (Signature Version 4).

use std::fmt::Write;

use hmac::digest::Output;
use hmac::{Hmac, Mac};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};
use url::Url;
use zeroize::Zeroizing;

use crate::secrets::{Fingerprint, Secret};

/// The media type of requests to AWS services.
pub(super) const JSON: &str = "application/x-amz-json-1.1";

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The credentials that sign requests.
#[derive(Debug, Clone)]
pub(in crate::cloud) struct AwsCredentials {
    pub(in crate::cloud) id: String,
    pub(in crate::cloud) secret: Secret,
    /// The session token of temporary credentials.
    pub(in crate::cloud) session: Option<Secret>,
}

impl AwsCredentials {
    /// Returns a fingerprint that is equal for equal credentials.
    pub(in crate::cloud) fn fingerprint(&self) -> Fingerprint {
        let session = self.session.as_ref().map(Secret::expose).unwrap_or_default();
        Fingerprint::of([self.id.as_bytes(), self.secret.expose(), session])
    }
}

/// A POST of JSON to a service.
#[derive(Clone, Copy)]
pub(super) struct Signable<'s> {
    pub(super) service: &'s str,
    pub(super) region: &'s str,
    /// The operation, in `X-Amz-Target`.
    pub(super) target: &'static str,
    pub(super) url: &'s Url,
    pub(super) body: &'s [u8],
}

/// The headers of a signature.
#[derive(Debug)]
pub(super) struct Signed {
    /// `X-Amz-Date`.
    pub(super) date: String,
    /// `Authorization`.
    pub(super) authorization: String,
}

/// The parts of a request that are signed.
struct CanonicalRequest<'c> {
    method: &'c str,
    url: &'c Url,
    /// Lower-case names, in order.
    headers: &'c [(&'c str, &'c str)],
    body: &'c [u8],
}

impl Signable<'_> {
    /// Signs the request at a time, for the host of its address.
    pub(super) fn sign(&self, credentials: &AwsCredentials, now: Timestamp) -> Signed {
        let date = now.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string();
        let host = host(self.url);
        let session = credentials.session.as_ref().map(|session| String::from_utf8_lossy(session.expose()));
        let session = session.map(|session| Zeroizing::new(session.into_owned()));
        let mut headers =
            vec![("content-type", JSON), ("host", host.as_str()), ("x-amz-date", date.as_str())];
        headers.extend(session.as_ref().map(|session| ("x-amz-security-token", session.as_str())));
        headers.push(("x-amz-target", self.target));
        let canonical =
            CanonicalRequest { method: "POST", url: self.url, headers: &headers, body: self.body };
        let authorization = canonical.authorization(credentials, &date, [self.region, self.service]);
        Signed { date, authorization }
    }
}

impl CanonicalRequest<'_> {
    fn authorization(
        &self,
        credentials: &AwsCredentials,
        date: &str,
        [region, service]: [&str; 2],
    ) -> String {
        let day = date.split('T').next().unwrap_or_default();
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let signature = signature(credentials, self.text(&names).as_bytes(), date, [region, service]);
        format!(
            "{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            credentials.id
        )
    }

    fn text(&self, names: &str) -> Zeroizing<String> {
        let mut query: Vec<&str> = self.url.query().unwrap_or_default().split('&').collect();
        query.sort_unstable();
        let mut text = Zeroizing::new(format!("{}\n{}\n{}\n", self.method, self.url.path(), query.join("&")));
        for (name, value) in self.headers {
            let _infallible = writeln!(text, "{name}:{}", value.trim());
        }
        let _infallible = write!(text, "\n{names}\n{:x}", Sha256::digest(self.body));
        text
    }
}

/// Signs access to a git repository of CodeCommit.
///
/// The canonical request has no hash of a payload, and `date` has no `Z`.
pub(super) fn git_signature(
    credentials: &AwsCredentials,
    [host, path]: [&str; 2],
    date: &str,
    region: &str,
) -> String {
    let request = format!("GIT\n{path}\n\nhost:{host}\n\nhost\n");
    signature(credentials, request.as_bytes(), date, [region, "codecommit"])
}

/// Signs a canonical request.
fn signature(
    credentials: &AwsCredentials,
    request: &[u8],
    date: &str,
    [region, service]: [&str; 2],
) -> String {
    let day = date.split('T').next().unwrap_or_default();
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let text = format!("{ALGORITHM}\n{date}\n{scope}\n{:x}", Sha256::digest(request));
    let mut key = Zeroizing::new([b"AWS4", credentials.secret.expose()].concat());
    for part in [day, region, service, "aws4_request"] {
        key = Zeroizing::new(hmac_sha256(&key, part.as_bytes()).to_vec());
    }
    format!("{:x}", hmac_sha256(&key, text.as_bytes()))
}

/// Returns host and port as in the header `Host`.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn hmac_sha256(key: &[u8], message: &[u8]) -> Output<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(message);
    mac.finalize().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::Secret;

    fn credentials(session: Option<&str>) -> AwsCredentials {
        AwsCredentials {
            id: "AKIDEXAMPLE".to_owned(),
            secret: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session: session.map(Secret::new),
        }
    }

    const DATE: (&str, &str) = ("x-amz-date", "20150830T123600Z");
    const HOST: (&str, &str) = ("host", "example.amazonaws.com");
    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

    /// Method, address, headers, body, and the expected signature.
    type Example<'e> = (&'e str, &'e str, &'e [(&'e str, &'e str)], &'e str, &'e str);

    /// The examples that AWS publishes with the specification of signatures.
    #[test]
    fn the_published_examples_hold() {
        let session = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
        let cases: &[Example<'_>] = &[
            (
                "GET",
                "https://example.amazonaws.com/",
                &[HOST, DATE],
                "",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "POST",
                "https://example.amazonaws.com/",
                &[HOST, DATE],
                "",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "GET",
                "https://example.amazonaws.com/?Param2=value2&Param1=value1",
                &[HOST, DATE],
                "",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                "POST",
                "https://example.amazonaws.com/",
                &[FORM, HOST, DATE],
                "Param1=value1",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
            (
                "POST",
                "https://example.amazonaws.com/",
                &[HOST, DATE, ("x-amz-security-token", session)],
                "",
                "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
            ),
        ];
        for (method, url, headers, body, signature) in cases {
            let url = Url::parse(url).unwrap();
            let canonical = CanonicalRequest { method, url: &url, headers, body: body.as_bytes() };
            let authorization = canonical.authorization(&credentials(None), DATE.1, ["us-east-1", "service"]);
            let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                 SignedHeaders={}, Signature={signature}",
                names.join(";")
            );
            assert_eq!(authorization, expected, "{method} {url}");
        }
    }

    #[test]
    fn the_token_request_is_signed_with_its_headers() {
        let url = Url::parse("https://api.ecr.eu-west-1.amazonaws.com/").unwrap();
        let signable = Signable {
            service: "ecr",
            region: "eu-west-1",
            target: "X.GetAuthorizationToken",
            url: &url,
            body: b"{}",
        };
        let now = "2015-08-30T12:36:00.9Z".parse().unwrap();
        let (plain, session) =
            (signable.sign(&credentials(None), now), signable.sign(&credentials(Some("x")), now));
        assert_eq!(plain.date, "20150830T123600Z");
        for (signed, names) in [
            (&plain, "content-type;host;x-amz-date;x-amz-target"),
            (&session, "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"),
        ] {
            let begin = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-1/ecr/aws4_request, SignedHeaders={names}, \
                 Signature="
            );
            assert!(signed.authorization.starts_with(&begin), "{}", signed.authorization);
            assert_eq!(signed.authorization.len(), begin.len() + 64);
        }
        assert_ne!(plain.authorization, session.authorization);
        assert_eq!(host(&Url::parse("http://127.0.0.1:80/").unwrap()), "127.0.0.1");
        assert_eq!(host(&Url::parse("http://127.0.0.1:81/").unwrap()), "127.0.0.1:81");
    }
}
