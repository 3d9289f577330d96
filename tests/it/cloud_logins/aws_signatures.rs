//! AWS signatures: the server computes the same signature from the request that it gets.

use std::fmt::Write;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use super::{ECR, KEYS, after, clouds, log_in};
use crate::support::git_host::request::Request;
use crate::support::recording::Recording;

fn code(key: &[u8], message: &str) -> Vec<u8> {
    let mut code = Hmac::<Sha256>::new_from_slice(key).unwrap();
    code.update(message.as_bytes());
    code.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Returns the right signature of a request, computed as by a server.
/// It is computed from the headers that the request names.
fn signature(request: &Request, secret: &str) -> String {
    let authorization = request.authorization().unwrap();
    let part = |name: &str| {
        let (_, rest) = authorization.split_once(&format!("{name}=")).unwrap();
        rest.split(',').next().unwrap().to_owned()
    };
    let (credential, names) = (part("Credential"), part("SignedHeaders"));
    let scope = credential.split_once('/').unwrap().1;
    let headers: String =
        names.split(';').map(|name| format!("{name}:{}\n", request.header(name).unwrap())).collect();
    let body = hex(&Sha256::digest(&request.body));
    let canonical =
        format!("{}\n{}\n{}\n{headers}\n{names}\n{body}", request.method, request.path, request.query);
    let date = request.header("x-amz-date").unwrap();
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
    let key = scope.split('/').fold(format!("AWS4{secret}").into_bytes(), |key, part| code(&key, part));
    hex(&code(&key, &text))
}

#[tokio::test]
async fn a_server_comes_to_the_same_signature() {
    for (names, variables, secret) in [
        (&["aws-token"][..], &KEYS[..], KEYS[1].1),
        (&["aws-instance", "aws-token-with-session"], &[], "hunter3"),
    ] {
        let recording = Recording::replay(names);
        log_in(&clouds(&recording, variables), ECR, after(0)).await.unwrap();
        let requests = recording.finish();
        let request = requests.last().unwrap();
        let found = request.authorization().unwrap().split_once("Signature=").unwrap().1;
        assert_eq!(found, signature(request, secret));
    }
}
