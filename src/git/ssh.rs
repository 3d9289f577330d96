//! The ssh command that git starts.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use super::signature::ed25519_to_openssh;
use super::{AccessError, PrivateDirectory, PrivateFile, PrivateFiles, SshCredentials};

/// The time in seconds in which a server must answer a connection.
const CONNECT_TIMEOUT: u32 = 30;

/// The time in seconds after which ssh probes a silent server.
/// After the fourth unanswered probe, ssh ends.
const ALIVE_INTERVAL: u32 = 15;

/// Algorithms that ssh may use; an empty list leaves its own defaults.
#[derive(Debug, Clone, Default)]
pub struct SshAlgorithms {
    /// Algorithms for the key exchange.
    pub key_exchange: Vec<String>,
    /// Algorithms for the server's key.
    pub host_keys: Vec<String>,
}

/// The variables and files of ssh, which must outlive git.
pub(super) struct SshSetup {
    /// Variables for git, and for ssh below it.
    pub(super) variables: Vec<(OsString, OsString)>,
    /// The key, the known hosts, and the passphrase if there is one.
    pub(super) files: Vec<Arc<PrivateFile>>,
    /// Directory of the program that prints the passphrase.
    pub(super) programs: Option<PrivateDirectory>,
}

/// Returns the credentials with a key that OpenSSH before 9.6 reads.
///
/// An Ed25519 key in PKCS#8 without a passphrase, as Flux's command line writes it, is converted. Other keys
/// stay as they are.
pub(super) fn with_readable_key(credentials: &SshCredentials) -> Cow<'_, SshCredentials> {
    match ed25519_to_openssh(&credentials.identity) {
        // A passphrase beside it would not be asked for.
        Some(identity) => Cow::Owned(SshCredentials { identity, passphrase: None, ..credentials.clone() }),
        None => Cow::Borrowed(credentials),
    }
}

/// Writes the files for ssh; `notes` is a directory for those of one connection.
pub(super) fn prepare(
    credentials: &SshCredentials,
    algorithms: &SshAlgorithms,
    files: &PrivateFiles,
    notes: &Path,
) -> Result<SshSetup, AccessError> {
    let identity = files.write("identity", credentials.identity.expose())?;
    let known_hosts = files.write("known_hosts", credentials.known_hosts.expose())?;
    let mut options = vec![
        format!("IdentityFile={}", quote_option(identity.path())?),
        "IdentitiesOnly=yes".to_owned(),
        "IdentityAgent=none".to_owned(),
        format!("UserKnownHostsFile={}", quote_option(known_hosts.path())?),
        "GlobalKnownHostsFile=/dev/null".to_owned(),
        "StrictHostKeyChecking=yes".to_owned(),
        "UpdateHostKeys=no".to_owned(),
        "PreferredAuthentications=publickey".to_owned(),
        format!("User={}", credentials.user),
        format!("ConnectTimeout={CONNECT_TIMEOUT}"),
        format!("ServerAliveInterval={ALIVE_INTERVAL}"),
        "ServerAliveCountMax=4".to_owned(),
    ];
    for (name, list) in
        [("KexAlgorithms", &algorithms.key_exchange), ("HostKeyAlgorithms", &algorithms.host_keys)]
    {
        if !list.is_empty() {
            options.push(format!("{name}={}", list.join(",")));
        }
    }
    let mut variables = vec![("GIT_SSH_VARIANT".into(), "ssh".into())];
    let mut written = vec![identity, known_hosts];
    let programs = match &credentials.passphrase {
        None => {
            options.push("BatchMode=yes".to_owned());
            None
        }
        Some(passphrase) => {
            // The second question tells that the first answer was wrong; ssh itself does not report it.
            options.push("NumberOfPasswordPrompts=2".to_owned());
            let file = files.write("passphrase", passphrase.expose())?;
            let programs = PrivateDirectory::create_for_programs()?;
            let script = programs.write_program("askpass", &askpass_script(file.path(), notes))?;
            written.push(file);
            variables.push(("SSH_ASKPASS".into(), script.into()));
            variables.push(("SSH_ASKPASS_REQUIRE".into(), "force".into()));
            Some(programs)
        }
    };
    let mut command = "ssh -F /dev/null".to_owned();
    for option in options {
        command.push_str(" -o ");
        command.push_str(&String::from_utf8_lossy(&shell_word(OsStr::new(&option))));
    }
    variables.push(("GIT_SSH_COMMAND".into(), command.into()));
    Ok(SshSetup { variables, files: written, programs })
}

/// Returns a program that prints a passphrase once to each ssh, its parent process.
/// The program fails when it is asked again.
fn askpass_script(file: &Path, notes: &Path) -> Vec<u8> {
    let file = shell_word(file.as_os_str());
    let asked = [shell_word(notes.join("asked").as_os_str()).as_slice(), b".$PPID"].concat();
    [
        b"#!/bin/sh\nif test -e ",
        asked.as_slice(),
        b"; then\n\techo 'incorrect passphrase' >&2\n\texit 1\nfi\n: > ",
        &asked,
        b"\nexec cat ",
        &file,
        b"\n",
    ]
    .concat()
}

/// Writes a path as the value of an option of ssh.
/// Ssh splits the value at spaces, and reads `%` and `${` as the start of a variable.
fn quote_option(path: &Path) -> Result<String, AccessError> {
    let unquotable = || AccessError::UnquotablePath { path: path.to_owned() };
    let text = path.to_str().ok_or_else(unquotable)?;
    if text.contains(|c: char| c.is_control() || "\"\\$".contains(c)) {
        return Err(unquotable());
    }
    Ok(format!("\"{}\"", text.replace('%', "%%")))
}

/// Quotes a text as one word for a shell.
fn shell_word(text: &OsStr) -> Vec<u8> {
    let mut word = vec![b'\''];
    for &byte in text.as_encoded_bytes() {
        match byte {
            b'\'' => word.extend_from_slice(b"'\\''"),
            byte => word.push(byte),
        }
    }
    word.push(b'\'');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_ssh_and_for_the_shell() {
        assert_eq!(quote_option(Path::new("/a b/50%/c'd")).unwrap(), "\"/a b/50%%/c'd\"");
        for path in ["/a\"b", "/a\\b", "/${HOME}", "/a\nb"] {
            assert!(
                matches!(quote_option(Path::new(path)), Err(AccessError::UnquotablePath { .. })),
                "{path}"
            );
        }
        assert_eq!(shell_word(OsStr::new("a'b $c")), b"'a'\\''b $c'");
    }
}
