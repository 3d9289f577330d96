//! The login of an SSH remote.
//!
//! The first byte chooses whether the rest is `known_hosts` or `identity` of the Secret.

use std::collections::BTreeMap;

use tagboat::git::{Credentials, LocalPaths, RemoteUrl};
use tagboat::secrets::{Secret, SecretData};

const IDENTITY: &[u8] = b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n";
const KNOWN_HOSTS: &[u8] = b"host ssh-ed25519 AAAA\n";

/// Parses any bytes as `known_hosts` or as `identity`.
///
/// They are either rejected with an error that shows none of them, or accepted with normalized line breaks and a line
/// that names a host, and otherwise unchanged.
pub fn known_hosts(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else { return };
    let is_hosts = choice & 1 == 0;
    let (identity, hosts) = if is_hosts { (IDENTITY, rest) } else { (rest, KNOWN_HOSTS) };
    let data = BTreeMap::from([
        ("identity".to_owned(), Secret::new(identity)),
        ("known_hosts".to_owned(), Secret::new(hosts)),
    ]);
    let url =
        RemoteUrl::parse("ssh://git@host/repository", LocalPaths::Under("/".as_ref())).expect("it is a URL");
    match Credentials::generic(&url, Some(SecretData { name: "apps/login", data: &data })) {
        Ok(Credentials::Ssh(ssh)) => {
            let (written, given) = (ssh.known_hosts.expose(), hosts);
            assert!(written.ends_with(b"\n") && !written.contains(&b'\r'), "{written:?}");
            assert!(is_same_text(written, given), "{written:?} is not {given:?}");
            assert!(written.split(|&byte| byte == b'\n').any(names_a_host), "{written:?}");
            assert!(ssh.identity.expose().starts_with(b"-----BEGIN "));
        }
        Ok(_) => panic!("the login of an SSH remote is one for SSH"),
        Err(error) => {
            let sentence = error.to_string();
            let is_known = sentence.starts_with("secret 'apps/login'")
                || sentence.starts_with("invalid 'ssh' auth option");
            assert!(is_known && sentence.len() < 300, "{sentence}");
        }
    }
}

/// Returns whether two texts have the same lines, apart from their line endings.
fn is_same_text(written: &[u8], given: &[u8]) -> bool {
    let plain: Vec<u8> = given.iter().copied().filter(|&byte| byte != b'\r').collect();
    written == plain || written.strip_suffix(b"\n") == Some(&plain)
}

/// Returns whether a line that is not a comment has a host and a key.
fn names_a_host(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let is_comment = words.clone().next().is_some_and(|word| word[0] == b'#');
    !is_comment && words.nth(2).is_some()
}
