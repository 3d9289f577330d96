//! The real `git http-backend`, run as a CGI program.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::life::Life;
use super::request::Request;
use super::response::Response;
use crate::support::git_program::{git, harden, output};

/// Serves the bare repositories below a directory.
pub(super) struct Backend {
    program: PathBuf,
    root: PathBuf,
    /// The program's standard error.
    errors: File,
}

impl Backend {
    pub(super) fn new(root: &Path) -> Self {
        let directory = output(git(root).arg("--exec-path"), b"");
        let directory = String::from_utf8(directory).expect("git's own path is UTF-8");
        let program = Path::new(directory.trim_end()).join("git-http-backend");
        assert!(
            program.exists(),
            "git http-backend is not installed at {}; install all of git",
            program.display()
        );
        let errors = tempfile::tempfile().expect("a file without a name can be made");
        Self { program, root: root.to_owned(), errors }
    }

    /// The program's standard error so far.
    pub(super) fn standard_error(&self) -> String {
        let mut text = String::new();
        let mut errors = &self.errors;
        let _only_for_people = errors.rewind().and_then(|()| errors.read_to_string(&mut text));
        text
    }

    /// Lets the program answer a request; `None` if the host ends meanwhile.
    pub(super) fn answer(
        &self,
        life: &Life,
        user: Option<&str>,
        (request, body): (&Request, &[u8]),
    ) -> Option<Response> {
        let mut command = Command::new(&self.program);
        harden(&mut command)
            .env("GIT_PROJECT_ROOT", &self.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("GATEWAY_INTERFACE", "CGI/1.1")
            .env("SERVER_PROTOCOL", "HTTP/1.1")
            .env("REMOTE_ADDR", "127.0.0.1")
            .env("REQUEST_METHOD", &request.method)
            .env("PATH_INFO", decode(&request.path))
            .env("QUERY_STRING", &request.query);
        for (variable, header) in [
            ("CONTENT_TYPE", "content-type"),
            ("CONTENT_LENGTH", "content-length"),
            ("HTTP_CONTENT_ENCODING", "content-encoding"),
            ("GIT_PROTOCOL", "git-protocol"),
        ] {
            if let Some(value) = request.header(header) {
                command.env(variable, value);
            }
        }
        if let Some(user) = user {
            command.env("REMOTE_USER", user);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(self.errors.try_clone().expect("a file can be shared"));
        let mut child = life.spawn(&mut command)?;
        let (mut input, mut output) =
            (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut printed = Vec::new();
        std::thread::scope(|scope| {
            // A program that refuses a request need not read all of it, so a broken pipe is no error.
            scope.spawn(move || input.write_all(body));
            output.read_to_end(&mut printed).expect("a pipe can be read");
        });
        life.reap(child);
        Some(Response::of_cgi(&printed).unwrap_or_else(|| Response::empty(502)))
    }
}

/// A path without percent-encoding.
fn decode(path: &str) -> std::ffi::OsString {
    let bytes = percent(path.as_bytes());
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

fn percent(path: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| first == b'%');
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    bytes
}
