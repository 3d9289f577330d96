//! HTTP/1.1 requests, read from a connection.

use std::io::{self, BufRead, Read, Write};

use super::stream::Connection;

/// The longest line of a request; git's are shorter.
const LONGEST_LINE: u64 = 64 * 1024;

/// One request, without its body.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path of the request, percent-encoded.
    pub(crate) path: String,
    /// The query string.
    pub(crate) query: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Bytes of the body, with chunks joined, and still compressed.
    pub(crate) body_size: usize,
    /// The body, if the server keeps it.
    pub(crate) body: Vec<u8>,
    /// The command of protocol 2: `ls-refs` or `fetch`.
    pub(crate) command: Option<String>,
}

impl Request {
    /// Reads the next request and its body; `None` at the end of the connection.
    pub(crate) fn read(connection: &mut Connection) -> io::Result<Option<(Self, Vec<u8>)>> {
        let Some(first) = read_line(connection)? else { return Ok(None) };
        let mut words = first.split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(wrong(format!("not a request line: {first}")));
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: read_headers(connection)?,
            body_size: 0,
            body: Vec::new(),
            command: None,
        };
        if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            connection.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            connection.get_mut().flush()?;
        }
        let body = request.read_body(connection)?;
        request.body_size = body.len();
        request.command = command(&body);
        Ok(Some((request, body)))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The credentials of the request, decoded.
    pub(crate) fn authorization(&self) -> Option<&str> {
        self.header("authorization")
    }

    pub(crate) fn ends_connection(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    fn is_chunked(&self) -> bool {
        self.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
    }

    fn read_body(&self, connection: &mut Connection) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if self.is_chunked() {
            loop {
                let line = read_line(connection)?.unwrap_or_default();
                let digits = line.split(';').next().unwrap_or_default().trim();
                let size = u64::from_str_radix(digits, 16).map_err(|_| wrong(format!("no chunk: {line}")))?;
                if size == 0 {
                    read_headers(connection)?;
                    return Ok(body);
                }
                read_exactly(connection, size, &mut body)?;
                read_line(connection)?;
            }
        }
        if let Some(length) = self.header("content-length") {
            let size = length.parse().map_err(|_| wrong(format!("no length: {length}")))?;
            read_exactly(connection, size, &mut body)?;
        }
        Ok(body)
    }
}

/// A line without its line break; `None` at the end of the connection.
fn read_line(connection: &mut Connection) -> io::Result<Option<String>> {
    let mut line = String::new();
    if connection.take(LONGEST_LINE).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    if !line.ends_with('\n') {
        return Err(wrong("a line without an end".to_owned()));
    }
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

fn read_headers(connection: &mut Connection) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(connection)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| wrong(format!("no header: {line}")))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_exactly(connection: &mut Connection, size: u64, body: &mut Vec<u8>) -> io::Result<()> {
    if connection.take(size).read_to_end(body)? as u64 == size {
        return Ok(());
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Reads `command=NAME` of the first packet line, whose first four bytes are its length.
fn command(body: &[u8]) -> Option<String> {
    let line = body.get(4..)?.strip_prefix(b"command=")?;
    let end = line.iter().position(|byte| !byte.is_ascii_lowercase() && *byte != b'-')?;
    String::from_utf8(line[..end].to_vec()).ok()
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
