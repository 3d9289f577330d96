//! One connection of a git host: requests and answers.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use super::Settings;
use super::backend::Backend;
use super::fault::{Fault, Operation, Plan};
use super::life::Life;
use super::request::Request;
use super::response::Response;
use super::stream::Stream;

/// Longer than any test.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);

/// The state that a host shares with its connections.
pub(super) struct Host {
    pub(super) settings: Settings,
    pub(super) plan: Mutex<Plan>,
    pub(super) records: Mutex<Vec<Record>>,
    pub(super) life: Life,
    pub(super) backend: Backend,
}

/// A request, and its result.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) request: Request,
    /// The operation of the request; `None` for anything but the four operations.
    pub(crate) operation: Option<Operation>,
    /// True if its credentials were right.
    pub(crate) is_admitted: bool,
    /// The status of the answer; `None` before there is one.
    pub(crate) answer: Option<u16>,
}

/// The registration of a connection at its host, which is dropped before the connection.
struct Membership<'a> {
    life: &'a Life,
    number: usize,
}

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        self.life.leave(self.number);
    }
}

/// The next step of a connection.
enum Next {
    Answer(Response),
    Reset,
    End,
}

impl Host {
    pub(super) fn new(root: &Path, settings: Settings) -> Self {
        let backend = Backend::new(root);
        Self { settings, plan: Mutex::default(), records: Mutex::default(), life: Life::default(), backend }
    }

    /// Serves a connection to its end.
    pub(super) fn serve(&self, socket: TcpStream, number: usize) {
        let mut connection = BufReader::new(Stream::new(socket, self.settings.tls.as_ref()));
        let _until_then = Membership { life: &self.life, number };
        // Clients may close a connection at any time, some of them because a test wants it: that is no failure here.
        let _broken_off = self.converse(&mut connection);
    }

    fn converse(&self, connection: &mut BufReader<Stream>) -> io::Result<()> {
        while let Some((request, body)) = Request::read(connection)? {
            let place = self.record(&request);
            match self.next(&request, &body) {
                Next::Answer(response) => {
                    // Before it is sent, so that the record is complete when a client has the answer.
                    self.records.lock().expect("records are whole")[place].answer = Some(response.status);
                    response.write(connection.get_mut())?;
                }
                Next::Reset => return connection.get_ref().reset_on_drop(),
                Next::End => return Ok(()),
            }
            if request.ends_connection() {
                break;
            }
        }
        connection.get_mut().finish()
    }

    fn record(&self, request: &Request) -> usize {
        let operation = Operation::of(request).map(|(operation, _)| operation);
        let is_admitted = self.settings.access.admit(request).is_ok();
        let mut records = self.records.lock().expect("records are whole");
        records.push(Record { request: request.clone(), operation, is_admitted, answer: None });
        records.len() - 1
    }

    fn next(&self, request: &Request, body: &[u8]) -> Next {
        let user = match self.settings.access.admit(request) {
            Ok(user) => user,
            Err(challenge) => {
                return Next::Answer(Response::empty(401).with_header("WWW-Authenticate", challenge));
            }
        };
        let forward =
            || self.backend.answer(&self.life, user, (request, body)).map_or(Next::End, Next::Answer);
        let Some((operation, repository)) = Operation::of(request) else { return forward() };
        let (meanwhile, fault, moved) = {
            let mut plan = self.plan.lock().expect("the plan is whole");
            let (meanwhile, fault) = plan.next(operation);
            (meanwhile, fault, plan.move_of(repository))
        };
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        match fault.or(moved) {
            None => forward(),
            Some(Fault::Redirect { status, to }) => {
                let tail = &request.path[repository.len()..];
                let mark = if request.query.is_empty() { "" } else { "?" };
                let location = format!("{to}{tail}{mark}{}", request.query);
                Next::Answer(Response::empty(status).with_header("Location", &location))
            }
            Some(Fault::Delay(time)) => {
                self.life.sleep(time);
                forward()
            }
            Some(Fault::Status(status)) => Next::Answer(Response::empty(status)),
            Some(Fault::Hang) => self.hang(),
            Some(Fault::HangAfterwards) => {
                forward();
                self.hang()
            }
            Some(Fault::Reset) => Next::Reset,
            Some(Fault::ResetAfterwards) => {
                forward();
                Next::Reset
            }
        }
    }

    fn hang(&self) -> Next {
        self.life.sleep(FOR_EVER);
        Next::End
    }
}
