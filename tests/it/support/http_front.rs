//! A small HTTP server on loopback in front of a real one.
//! It answers or forwards each request as a test wants.
//!
//! ```text
//! let front = Front::before(registry.port(), |request| match request.path.as_str() {
//!     "/v2/app/tags/list" => Reply::status(429).with("Retry-After", "1"),
//!     _ => Reply::Forward,
//! });
//! // … send requests to front.address() …
//! assert_eq!(front.requests().len(), 3);
//! ```

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::ServerConfig;

use super::git_host::request::Request;
use super::git_host::stream::Stream;

/// The handling of a request.
pub(crate) enum Reply {
    /// The server behind the front answers.
    Forward,
    /// The front answers with this.
    Answer { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// The connection is closed before the last bytes of the answer.
    /// The answer is that of the server behind.
    Truncated,
    /// The server behind answers, but late.
    Late(Duration),
    /// There is no answer, for longer than any test takes.
    Silence,
    /// The connection is closed.
    Gone,
    /// The server behind handles the request, and the client gets no answer.
    Unanswered {
        /// Becomes true once the server has answered.
        is_handled: Arc<AtomicBool>,
        /// The connection is closed once this is true.
        until: Arc<AtomicBool>,
    },
    /// The answer is sent byte by byte, for ever.
    Drip,
    /// A whole answer with status 200, sent in pieces with a pause after each.
    Paced { body: Vec<u8>, piece: usize, pause: Duration },
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self::body(status, "")
    }

    pub(crate) fn body(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::Answer { status, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self::status(307).with("Location", to)
    }

    /// Adds a header to an answer.
    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        match self {
            Self::Answer { status, mut headers, body } => {
                headers.push((name.to_owned(), value.to_owned()));
                Self::Answer { status, headers, body }
            }
            _ => panic!("only an answer of ours has headers of ours"),
        }
    }
}

type Plan = dyn Fn(&Request) -> Reply + Send + Sync;

/// A running server.
pub(crate) struct Front {
    address: SocketAddr,
    is_secured: bool,
    requests: Arc<Mutex<Vec<Request>>>,
    is_over: Arc<AtomicBool>,
}

impl Front {
    /// Starts a front of a server on a port of this machine.
    pub(crate) fn before(port: u16, plan: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(Some(port), None, Arc::new(plan))
    }

    /// Starts a front without a server behind it; nothing can be forwarded.
    pub(crate) fn alone(plan: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(None, None, Arc::new(plan))
    }

    /// Starts a front with TLS, with the configuration of `Authority::server`.
    pub(crate) fn secured(
        port: Option<u16>,
        tls: Arc<ServerConfig>,
        plan: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start(port, Some(tls), Arc::new(plan))
    }

    /// Starts a front at an address that was not served so far.
    pub(crate) fn at(
        address: &str,
        port: u16,
        plan: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("the address is still free");
        Self::serve(listener, Some(port), None, Arc::new(plan))
    }

    fn start(port: Option<u16>, tls: Option<Arc<ServerConfig>>, plan: Arc<Plan>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        Self::serve(listener, port, tls, plan)
    }

    fn serve(
        listener: TcpListener,
        port: Option<u16>,
        tls: Option<Arc<ServerConfig>>,
        plan: Arc<Plan>,
    ) -> Self {
        let front = Self {
            address: listener.local_addr().expect("a bound socket has an address"),
            is_secured: tls.is_some(),
            requests: Arc::default(),
            is_over: Arc::default(),
        };
        let (requests, is_over) = (Arc::clone(&front.requests), Arc::clone(&front.is_over));
        let attendant = Arc::new(Attendant { tls, port, plan, requests, is_over });
        thread::spawn(move || {
            for socket in listener.incoming() {
                if attendant.is_over.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(socket) = socket else { continue };
                let attendant = Arc::clone(&attendant);
                // A client that closes the connection early is no failure here.
                thread::spawn(move || {
                    let _ = serve(socket, &attendant);
                });
            }
        });
        front
    }

    /// Host and port, as in names of images.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", if self.is_secured { "https" } else { "http" }, self.address)
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("requests are whole").clone()
    }

    /// The requests for one path.
    pub(crate) fn requests_for(&self, path: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.path == path).collect()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// The state of the thread that serves a client.
struct Attendant {
    tls: Option<Arc<ServerConfig>>,
    port: Option<u16>,
    plan: Arc<Plan>,
    requests: Arc<Mutex<Vec<Request>>>,
    is_over: Arc<AtomicBool>,
}

fn serve(socket: TcpStream, attendant: &Attendant) -> std::io::Result<()> {
    let Attendant { tls, port, plan, requests, is_over } = attendant;
    let mut connection = BufReader::new(Stream::new(socket, tls.as_ref()));
    let Some((mut request, body)) = Request::read(&mut connection)? else { return Ok(()) };
    request.body.clone_from(&body);
    requests.lock().expect("requests are whole").push(request.clone());
    let reply = plan(&request);
    let stream = connection.get_mut();
    let behind = || port.expect("there is a server behind");
    match reply {
        Reply::Forward => stream.write_all(&forward(&request, &body, behind())?)?,
        Reply::Truncated => {
            let answer = forward(&request, &body, behind())?;
            stream.write_all(&answer[..answer.len() - 10])?;
        }
        Reply::Late(pause) => {
            thread::sleep(pause);
            stream.write_all(&forward(&request, &body, behind())?)?;
        }
        Reply::Gone => return Ok(()),
        Reply::Unanswered { is_handled, until } => {
            let handled = forward(&request, &body, behind());
            is_handled.store(true, Ordering::SeqCst);
            handled?;
            while !until.load(Ordering::SeqCst) && !is_over.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(5));
            }
            return Ok(());
        }
        Reply::Silence => {
            while !is_over.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(20));
            }
        }
        Reply::Drip => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
            while !is_over.load(Ordering::SeqCst) {
                stream.write_all(b" ")?;
                stream.flush()?;
                thread::sleep(Duration::from_millis(50));
            }
        }
        Reply::Paced { body, piece, pause } => {
            let head =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes())?;
            for part in body.chunks(piece) {
                if is_over.load(Ordering::SeqCst) {
                    return Ok(());
                }
                stream.write_all(part)?;
                stream.flush()?;
                thread::sleep(pause);
            }
        }
        Reply::Answer { status, headers, body } => {
            let mut answer = format!("HTTP/1.1 {status} As Told\r\nConnection: close\r\n").into_bytes();
            for (name, value) in headers {
                write!(answer, "{name}: {value}\r\n")?;
            }
            if status != 304 {
                write!(answer, "Content-Length: {}\r\n", body.len())?;
            }
            answer.extend_from_slice(b"\r\n");
            if request.method != "HEAD" {
                answer.extend_from_slice(&body);
            }
            stream.write_all(&answer)?;
        }
    }
    stream.finish()
}

/// Forwards a request, and returns the bytes of the answer.
fn forward(request: &Request, body: &[u8], port: u16) -> std::io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    let question = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
    let mut head = format!("{} {}{question} HTTP/1.1\r\nConnection: close\r\n", request.method, request.path);
    for (name, value) in &request.headers {
        if !["connection", "content-length", "transfer-encoding"].contains(&name.as_str()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    server.write_all(head.as_bytes())?;
    server.write_all(body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    Ok(answer)
}
