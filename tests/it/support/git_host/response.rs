//! HTTP responses, also from the output of a CGI program.

use std::io::{self, Write};

/// A complete response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Response {
    /// A response without content.
    pub(super) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub(super) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Parses the output of a CGI program.
    /// It has headers, perhaps `Status` among them, an empty line and the body.
    pub(super) fn of_cgi(mut output: &[u8]) -> Option<Self> {
        let mut response = Self::empty(200);
        loop {
            let end = output.iter().position(|byte| *byte == b'\n')?;
            let line = std::str::from_utf8(&output[..end]).ok()?.trim_end();
            output = &output[end + 1..];
            if line.is_empty() {
                response.body = output.to_vec();
                return Some(response);
            }
            let (name, value) = line.split_once(": ")?;
            if name.eq_ignore_ascii_case("status") {
                response.status = value.split(' ').next()?.parse().ok()?;
            } else {
                response = response.with_header(name, value);
            }
        }
    }

    pub(super) fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        let mut bytes = format!("HTTP/1.1 {} As Told\r\n", self.status).into_bytes();
        for (name, value) in &self.headers {
            write!(bytes, "{name}: {value}\r\n")?;
        }
        write!(bytes, "Content-Length: {}\r\n\r\n", self.body.len())?;
        bytes.extend_from_slice(&self.body);
        stream.write_all(&bytes)?;
        stream.flush()
    }
}
