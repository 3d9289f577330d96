//! Classifies the failures of remotes by the messages of git.
//!
//! Git has one exit status for all failures of a remote. Its messages, in the locale `C`, have been the same for years;
//! output without any of the messages below is passed on as it is.

use super::access::LoginOwner;
use super::git_output::GitOutput;
use crate::net::tells_archived;

/// The kind of a failure at a remote or on the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The server wants a login, or does not accept ours.
    Authentication,
    /// The server knows us and refuses.
    Forbidden,
    /// The repository is archived.
    Archived,
    /// There is no such repository, or none that we may see.
    NoRepository,
    /// No authority that we trust has signed the server's certificate.
    Certificate,
    /// The certificates that we trust cannot be read.
    Authority,
    /// The TLS handshake fails.
    Handshake,
    /// The server's host key differs from the known one.
    HostKeyChanged,
    /// The server's host key is not known.
    HostKeyUnknown,
    /// The server does not accept the SSH key.
    KeyRefused,
    /// The SSH key cannot be opened.
    KeyLocked,
    /// The SSH key is in a form that ssh does not read.
    KeyFormat,
    /// The name of the server cannot be resolved.
    UnknownHost,
    /// The server cannot be reached.
    Unreachable,
    /// The server broke the connection, or is broken.
    ConnectionLost,
    /// The server redirects elsewhere.
    Redirected,
    /// The server no longer has what it listed.
    Gone,
    /// An object is larger than the memory that git may take.
    ObjectTooLarge,
    /// Git needs more memory than it may take.
    OutOfMemory,
    /// There is no room on the disk.
    DiskFull,
    /// The mirror's own objects cannot be read.
    MirrorDamaged,
    /// The server takes no push options.
    NoPushOptions,
}

/// Messages of failures, with their kinds.
/// The first match counts, so specific messages are in front of general ones.
const MESSAGES: [(&str, FailureKind); 71] = [
    ("No space left on device", FailureKind::DiskFull),
    ("Disk quota exceeded", FailureKind::DiskFull),
    ("out of disk space", FailureKind::DiskFull),
    ("File too large", FailureKind::DiskFull),
    ("does not support push options", FailureKind::NoPushOptions),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", FailureKind::HostKeyChanged),
    ("Host key verification failed", FailureKind::HostKeyUnknown),
    ("incorrect passphrase", FailureKind::KeyLocked),
    ("bad decrypt", FailureKind::KeyLocked),
    ("error in libcrypto", FailureKind::KeyLocked),
    ("invalid format", FailureKind::KeyFormat),
    ("Permission denied (", FailureKind::KeyRefused),
    ("Too many authentication failures", FailureKind::KeyRefused),
    ("Could not resolve host", FailureKind::UnknownHost),
    ("Couldn't resolve host", FailureKind::UnknownHost),
    ("Name or service not known", FailureKind::UnknownHost),
    ("Temporary failure in name resolution", FailureKind::UnknownHost),
    ("could not read Username", FailureKind::Authentication),
    ("could not read Password", FailureKind::Authentication),
    ("Authentication failed", FailureKind::Authentication),
    ("returned error: 401", FailureKind::Authentication),
    ("returned error: 403", FailureKind::Forbidden),
    ("returned error: 404", FailureKind::NoRepository),
    ("returned error: 30", FailureKind::Redirected),
    ("unable to update url base from redirection", FailureKind::Redirected),
    ("returned error:", FailureKind::ConnectionLost),
    ("alert certificate required", FailureKind::Handshake),
    ("alert bad certificate", FailureKind::Handshake),
    ("SSL CA cert", FailureKind::Authority),
    ("error setting certificate", FailureKind::Authority),
    ("certificate", FailureKind::Certificate),
    ("SSL routines", FailureKind::Handshake),
    ("SSL_connect", FailureKind::Handshake),
    ("SSL connect error", FailureKind::Handshake),
    ("gnutls_handshake() failed", FailureKind::Handshake),
    ("Failed to connect to", FailureKind::Unreachable),
    ("Could not connect to", FailureKind::Unreachable),
    ("Couldn't connect to", FailureKind::Unreachable),
    ("Connection refused", FailureKind::Unreachable),
    ("Connection timed out", FailureKind::Unreachable),
    ("Network is unreachable", FailureKind::Unreachable),
    ("No route to host", FailureKind::Unreachable),
    ("not our ref", FailureKind::Gone),
    ("unadvertised object", FailureKind::Gone),
    ("couldn't find remote ref", FailureKind::Gone),
    ("is corrupt", FailureKind::MirrorDamaged),
    ("corrupt loose object", FailureKind::MirrorDamaged),
    ("is empty", FailureKind::MirrorDamaged),
    ("data stream error", FailureKind::MirrorDamaged),
    ("bad object", FailureKind::MirrorDamaged),
    ("missing blob", FailureKind::MirrorDamaged),
    ("unable to read", FailureKind::MirrorDamaged),
    ("unable to parse object", FailureKind::MirrorDamaged),
    ("did not send all necessary objects", FailureKind::MirrorDamaged),
    ("not a git repository: '", FailureKind::MirrorDamaged),
    ("unexpected line in ./packed-refs", FailureKind::MirrorDamaged),
    ("unterminated line in ./packed-refs", FailureKind::MirrorDamaged),
    ("bad config line", FailureKind::MirrorDamaged),
    ("bad shallow line", FailureKind::MirrorDamaged),
    ("shallow file has changed since we read it", FailureKind::MirrorDamaged),
    ("does not appear to be a git repository", FailureKind::NoRepository),
    ("' not found", FailureKind::NoRepository),
    ("Repository not found", FailureKind::NoRepository),
    ("is this a git repository?", FailureKind::NoRepository),
    ("hung up unexpectedly", FailureKind::ConnectionLost),
    ("Empty reply from server", FailureKind::ConnectionLost),
    ("Transport endpoint is not connected", FailureKind::ConnectionLost),
    ("Connection reset", FailureKind::ConnectionLost),
    ("RPC failed", FailureKind::ConnectionLost),
    ("early EOF", FailureKind::ConnectionLost),
    ("Could not read from remote repository", FailureKind::ConnectionLost),
];

/// Messages about git's own memory, which take precedence over all others.
/// Git prints further messages about the consequences.
const MEMORY: [(&str, FailureKind); 3] = [
    ("attempting to allocate", FailureKind::ObjectTooLarge),
    ("Out of memory", FailureKind::OutOfMemory),
    ("out of memory", FailureKind::OutOfMemory),
];

/// The prefix of messages of the server.
const SERVER_PREFIX: &str = "remote: ";

/// Beginnings of lines that add nothing to the kind of the failure.
const NOISE: [&str; 18] = [
    "@",
    "Add correct host key in",
    "Could not read from remote repository.",
    "Host key verification failed.",
    "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!",
    "It is also possible that a host key has just been changed.",
    "Offending ",
    "Please contact your system administrator.",
    "Please make sure you have the correct access rights",
    "Someone could be eavesdropping on you right now",
    "and the repository exists.",
    "could not read Password for",
    "could not read Username for",
    "expected flush after ref listing",
    "remove with:",
    "send-pack: unexpected disconnect while reading sideband packet",
    "ssh-keygen -f",
    "the remote end hung up unexpectedly",
];

/// Returns the part of git's output to print behind [`FailureKind::advice`].
pub(super) fn detail(output: &GitOutput) -> String {
    output.choose(|line| !NOISE.iter().any(|noise| line.starts_with(noise)))
}

/// Returns the kind of the failure, if it is known, from git's full output.
pub(super) fn classify(text: &str) -> Option<FailureKind> {
    // A server's lack of memory is another failure.
    let is_of_git =
        |known: &str| text.lines().any(|line| line.contains(known) && !line.starts_with(SERVER_PREFIX));
    let memory = MEMORY.iter().find(|(known, _)| is_of_git(known));
    if memory.is_none() && tells_archived(text) {
        return Some(FailureKind::Archived);
    }
    let known = memory.or_else(|| MESSAGES.iter().find(|(known, _)| text.contains(known)));
    known.map(|(_, kind)| *kind)
}

impl FailureKind {
    /// Returns a sentence with the remedy for the party that can correct the login.
    pub fn advice(self, owner: LoginOwner) -> &'static str {
        match owner {
            LoginOwner::Objects => self.advice_on_secret(),
            LoginOwner::User => self.advice_on_set_up().unwrap_or_else(|| self.advice_on_secret()),
        }
    }

    /// Returns the differing sentence for logins from the user's own set-up.
    fn advice_on_set_up(self) -> Option<&'static str> {
        Some(match self {
            Self::Authentication => {
                "the server requires a login, or does not accept yours; check that git's credential helper has the right one for this server"
            }
            Self::Forbidden => "the server forbids it (403); your login needs the right to read and to push",
            Self::NoRepository => "there is no such repository, or your login may not see it",
            Self::Certificate => {
                "the server's certificate is not trusted; name its authority's certificate in http.sslCAInfo of your git configuration"
            }
            Self::Authority => {
                "the trusted certificates cannot be read; check http.sslCAInfo in your git configuration"
            }
            Self::Handshake => {
                "the TLS handshake failed; check the port in the URL, and http.sslCert and http.sslKey in your git configuration if the server requires a client certificate"
            }
            Self::HostKeyChanged => {
                "the server's host key differs from the one in your known_hosts; if the server really has a new key, put it there"
            }
            Self::HostKeyUnknown => {
                "the server's host key is not in your known_hosts, or differs from the one there"
            }
            Self::KeyRefused => {
                "the server does not accept your SSH keys; check that the right one is in your SSH agent"
            }
            Self::KeyLocked => "your SSH key cannot be opened; add it to your SSH agent",
            Self::KeyFormat => {
                "ssh cannot read your SSH key; rewrite it in OpenSSH's form with `ssh-keygen -p -f FILE`"
            }
            _ => return None,
        })
    }

    fn advice_on_secret(self) -> &'static str {
        match self {
            Self::Authentication => {
                "the server requires credentials, or does not accept them; check the Secret that spec.secretRef of the GitRepository names"
            }
            Self::Forbidden => {
                "the server forbids it (403); give the user or token the right to read and to push"
            }
            Self::Archived => {
                "the repository is archived, so it is read-only; unarchive it, or suspend the automation"
            }
            Self::NoRepository => "there is no such repository, or the credentials may not see it",
            Self::Certificate => {
                "the server's certificate is not trusted; put its authority's certificate into ca.crt of the Secret"
            }
            Self::Authority => "the certificates in ca.crt of the Secret cannot be read",
            Self::Handshake => {
                "the TLS handshake failed; check the port in the URL, and tls.crt and tls.key of the Secret if the server requires a client certificate"
            }
            Self::HostKeyChanged => {
                "the server's host key differs from the one in known_hosts; if the server really has a new key, put it there"
            }
            Self::HostKeyUnknown => {
                "the server's host key is not in known_hosts of the Secret, or differs from the one there"
            }
            Self::KeyRefused => "the server does not accept the SSH key in identity of the Secret",
            Self::KeyLocked => {
                "the SSH key in identity of the Secret cannot be opened; check the passphrase in its key password"
            }
            Self::KeyFormat => {
                "ssh cannot read the SSH key in identity of the Secret; rewrite it in OpenSSH's form with `ssh-keygen -p -f FILE`"
            }
            Self::UnknownHost => "the name of the server cannot be resolved",
            Self::Unreachable => "the server cannot be reached",
            Self::ConnectionLost => "the server closed the connection or failed; the next run tries again",
            Self::Redirected => "the server redirects to another address",
            Self::Gone => "the server no longer has what it listed a moment ago",
            Self::ObjectTooLarge => {
                "the repository has an object larger than the 96 MiB that git may hold in memory; take the commit message, \
                 directory or file of that size out of the branch"
            }
            Self::OutOfMemory => {
                "git needs more than the 144 MiB of memory that it may have; the repository has too many references, or too \
                 many or too large objects: make the branch smaller, or delete references"
            }
            Self::DiskFull => "the disk of the mirror is full",
            Self::MirrorDamaged => "the mirror is damaged",
            Self::NoPushOptions => "the server does not support push options",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::process_memory::{OBJECT_MIB, PROCESS_MIB};

    #[test]
    fn known_messages_of_git_are_classified() {
        for (text, kind) in [
            (
                "could not read Username for 'http://h': terminal prompts disabled",
                FailureKind::Authentication,
            ),
            (
                "unable to access 'https://h/r/': The requested URL returned error: 403",
                FailureKind::Forbidden,
            ),
            (
                "remote: This repository was archived so it is read-only.\nfatal: unable to access 'https://h/r/': The requested URL returned error: 403",
                FailureKind::Archived,
            ),
            (
                "remote: This repo is archived. You can view files and clone it, but cannot push or open issues/pull-requests.\nfatal: unable to access 'https://h/r/': The requested URL returned error: 403",
                FailureKind::Archived,
            ),
            (
                "remote: You can't push code to an archived project.\nfatal: unable to access 'https://h/r/': The requested URL returned error: 403",
                FailureKind::Archived,
            ),
            (
                "unable to access 'https://h/archived/': The requested URL returned error: 403",
                FailureKind::Forbidden,
            ),
            (
                "unable to access 'https://h/r/': The requested URL returned error: 301",
                FailureKind::Redirected,
            ),
            (
                "unable to access 'https://h/r/': The requested URL returned error: 502",
                FailureKind::ConnectionLost,
            ),
            ("repository 'http://127.0.0.1:1/x.git/' not found", FailureKind::NoRepository),
            ("server certificate verification failed. CAfile: none CRLfile: none", FailureKind::Certificate),
            (
                "gnutls_handshake() failed: The TLS connection was non-properly terminated.",
                FailureKind::Handshake,
            ),
            ("SSL routines:ssl3_read_bytes:tlsv13 alert certificate required", FailureKind::Handshake),
            (
                "unable to access 'http://127.0.0.1:1/': Failed to connect to 127.0.0.1 port 1: Connection refused",
                FailureKind::Unreachable,
            ),
            (
                "No ED25519 host key is known for [127.0.0.1]:2222 and you have requested strict checking.; Host key verification failed.",
                FailureKind::HostKeyChanged,
            ),
            ("upload-pack: not our ref 1111111111111111111111111111111111111111", FailureKind::Gone),
            (
                "fatal: attempting to allocate 283115635 over limit 100663296\nfatal: fetch-pack: invalid index-pack output",
                FailureKind::ObjectTooLarge,
            ),
            (
                "fatal: Out of memory, malloc failed (tried to allocate 94371941 bytes)\nerror: https://h/x did not send all necessary objects",
                FailureKind::OutOfMemory,
            ),
            ("remote: fatal: Out of memory, malloc failed\nfatal: early EOF", FailureKind::ConnectionLost),
        ] {
            if text.contains("is known for") {
                assert_eq!(classify(text), Some(FailureKind::HostKeyUnknown), "{text}");
            } else {
                assert_eq!(classify(text), Some(kind), "{text}");
            }
        }
        assert_eq!(classify("something else"), None);
    }

    #[test]
    fn only_informative_lines_of_git_are_quoted() {
        for (text, expected) in [
            ("could not read Username for 'http://h': terminal prompts disabled", ""),
            (
                "@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nThe fingerprint is\nSHA256:x.\nOffending key in /x:2\n  remove with:\n  ssh-keygen -f \"/x\" -R \"h\"\nHost key verification failed.",
                "The fingerprint is; SHA256:x.",
            ),
            (
                "RPC failed; HTTP 403 curl 22 The requested URL returned error: 403\nfatal: the remote end hung up unexpectedly",
                "RPC failed; HTTP 403 curl 22 The requested URL returned error: 403",
            ),
        ] {
            assert_eq!(detail(&GitOutput::new(text, str::to_owned)), expected);
        }
    }

    #[test]
    fn the_limits_of_memory_are_named() {
        let advice = FailureKind::ObjectTooLarge.advice(LoginOwner::Objects);
        assert!(advice.contains(&format!("the {OBJECT_MIB} MiB")), "{advice}");
        let advice = FailureKind::OutOfMemory.advice(LoginOwner::Objects);
        assert!(advice.contains(&format!("the {PROCESS_MIB} MiB")), "{advice}");
    }

    #[test]
    fn every_failure_kind_has_advice() {
        let archived = ("an archived repository", FailureKind::Archived);
        for (text, kind) in MESSAGES.into_iter().chain(MEMORY).chain([archived]) {
            for owner in [LoginOwner::Objects, LoginOwner::User] {
                assert!(!kind.advice(owner).is_empty(), "{text}");
            }
            let advice = kind.advice(LoginOwner::User);
            assert!(!advice.contains("Secret") && !advice.contains("ca.crt"), "{text}: {advice}");
        }
    }
}
