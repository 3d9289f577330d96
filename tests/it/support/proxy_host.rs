//! An HTTP proxy on loopback: it opens tunnels for `CONNECT` and forwards other requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A running proxy.
/// Its thread ends with the process of the tests, its connections end with their peers.
pub(crate) struct ProxyHost {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<ProxyRequest>>>,
}

/// The head of a request, as the proxy got it.
#[derive(Debug, Clone)]
pub(crate) struct ProxyRequest {
    pub(crate) line: String,
    pub(crate) authorization: Option<String>,
}

impl ProxyHost {
    pub(crate) fn start() -> Self {
        Self::serving(None)
    }

    /// Starts a proxy that connects to `server` for `name`; both have a port.
    pub(crate) fn start_knowing(name: &str, server: &str) -> Self {
        Self::serving(Some((name.to_owned(), server.to_owned())))
    }

    fn serving(known: Option<(String, String)>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let records = Arc::clone(&requests);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (records, known) = (Arc::clone(&records), known.clone());
                // Peers may close a connection at any time.
                thread::spawn(move || serve(&socket, &records, known.as_ref()).ok());
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<ProxyRequest> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(
    client: &TcpStream,
    records: &Mutex<Vec<ProxyRequest>>,
    known: Option<&(String, String)>,
) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut line, mut headers) = (String::new(), Vec::new());
    reader.read_line(&mut line)?;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        if header.trim_end().is_empty() {
            break;
        }
        headers.push(header);
    }
    let of_proxy = |header: &&String| header.to_ascii_lowercase().starts_with("proxy-");
    let authorization = headers.iter().find_map(|header| {
        let (name, value) = header.split_once(": ")?;
        name.eq_ignore_ascii_case("proxy-authorization").then(|| value.trim_end().to_owned())
    });
    let record = ProxyRequest { line: line.trim_end().to_owned(), authorization };
    records.lock().unwrap().push(record);
    let find = |name: &str| match known {
        Some((known, server)) if known == name => TcpStream::connect(server),
        _ => TcpStream::connect(name),
    };
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method == "CONNECT" {
        let server = find(target)?;
        (&*client).write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
        return join(reader, client, &server);
    }
    let rest = target.strip_prefix("http://").ok_or(io::ErrorKind::InvalidInput)?;
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut server = find(server)?;
    // One request per connection, which both sides are told, so that each request has a head of its own.
    let mut head = format!("{method} /{path} HTTP/1.1\r\nConnection: close\r\n");
    headers.iter().filter(|header| !of_proxy(header)).for_each(|header| head.push_str(header));
    server.write_all(head.as_bytes())?;
    server.write_all(b"\r\n")?;
    let mut to_server = server.try_clone()?;
    thread::spawn(move || io::copy(&mut reader, &mut to_server).ok());
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    let line = answer.iter().position(|byte| *byte == b'\n').ok_or(io::ErrorKind::UnexpectedEof)?;
    (&*client).write_all(&answer[..=line])?;
    (&*client).write_all(b"Connection: close\r\n")?;
    (&*client).write_all(&answer[line + 1..])?;
    client.shutdown(Shutdown::Both)
}

/// Copies in both directions until both have ended.
fn join(
    mut from_client: impl Read + Send + 'static,
    client: &TcpStream,
    server: &TcpStream,
) -> io::Result<()> {
    let mut to_server = server.try_clone()?;
    thread::spawn(move || {
        let copied = io::copy(&mut from_client, &mut to_server);
        to_server.shutdown(Shutdown::Write).and(copied)
    });
    io::copy(&mut &*server, &mut &*client)?;
    client.shutdown(Shutdown::Both)
}
