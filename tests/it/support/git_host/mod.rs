//! A git server on loopback: HTTP by us, git by the real `git http-backend`.
//!
//! ```text
//! let root = tempfile::tempdir().unwrap();
//! let fleet = BareRepository::with_files(&root.path().join("fleet.git"), &[file("app.yaml", "tag: 1\n")]);
//! let host = GitHost::start(root.path(), Settings::default());
//! host.once(Operation::Push, Fault::ResetAfterwards);
//! // … run the program on host.url("fleet.git") …
//! assert_eq!(host.requests_for(Operation::Push).len(), 2);
//! fleet.assert_sound();
//! ```
//!
//! `Settings` choose the login and TLS. Faults are switched on and off while the host runs; they apply only to
//! requests that were admitted, so that a client has sent its credentials by then. A second host records the
//! requests that a redirect brings there. A host ends when it is dropped, with all of its child processes.

mod access;
mod backend;
mod exchange;
mod fault;
mod life;
pub(crate) mod request;
mod response;
pub(crate) mod stream;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustls::ServerConfig;

pub(crate) use access::Access;
use exchange::Host;
pub(crate) use exchange::Record;
use fault::Plan;
pub(crate) use fault::{Fault, Operation};

/// The login and TLS of a host.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) access: Access,
    /// The TLS configuration of `Authority::server`, for a host with TLS.
    pub(crate) tls: Option<Arc<ServerConfig>>,
}

/// A running server.
pub(crate) struct GitHost {
    address: SocketAddr,
    host: Arc<Host>,
    accepting: Option<JoinHandle<()>>,
}

impl GitHost {
    /// Serves the bare repositories below `root`, on a free port.
    pub(crate) fn start(root: &Path, settings: Settings) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let host = Arc::new(Host::new(root, settings));
        let accepting = Some(thread::spawn({
            let host = Arc::clone(&host);
            move || accept(&listener, &host)
        }));
        Self { address, host, accepting }
    }

    /// The URL of a repository, by its path below the root.
    pub(crate) fn url(&self, repository: &str) -> String {
        let scheme = if self.host.settings.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/{repository}", self.address)
    }

    /// Its port on loopback.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Adds a fault for the next request of this operation.
    /// Several faults apply in their order.
    pub(crate) fn once(&self, operation: Operation, fault: Fault) {
        self.plan().once(operation, fault);
    }

    /// Sets a fault for every request of this operation from now on.
    pub(crate) fn always(&self, operation: Operation, fault: Fault) {
        self.plan().always(operation, fault);
    }

    /// Redirects the repository at one path to another from now on.
    /// A forge does the same after a rename.
    pub(crate) fn moved(&self, from: &str, to: &str) {
        self.plan().moved(format!("/{from}"), self.url(to));
    }

    /// Runs `meanwhile` just before each request of this operation is forwarded or fails.
    ///
    /// An example is a push of another person. `meanwhile` must not use this host, or it would wait for
    /// itself. Before `ListForPush` the client loses the race, before `Push` the server does.
    pub(crate) fn meanwhile(&self, operation: Operation, meanwhile: impl Fn() + Send + Sync + 'static) {
        self.plan().meanwhile(operation, Arc::new(meanwhile));
    }

    /// Removes all faults and hooks.
    pub(crate) fn heal(&self) {
        *self.plan() = Plan::default();
    }

    /// Every request so far, in order.
    pub(crate) fn requests(&self) -> Vec<Record> {
        self.host.records.lock().expect("records are whole").clone()
    }

    /// Waits until every request of one operation so far has its answer.
    /// Requests whose client has gone are included.
    #[track_caller]
    pub(crate) fn wait_for_answers(&self, operation: Operation) {
        let begin = Instant::now();
        while self.requests_for(operation).iter().any(|request| request.answer.is_none()) {
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", self.requests());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Every admitted request of one operation so far.
    pub(crate) fn requests_for(&self, operation: Operation) -> Vec<Record> {
        let mut records = self.requests();
        records.retain(|record| record.operation == Some(operation) && record.is_admitted);
        records
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.host.plan.lock().expect("the plan is whole")
    }
}

impl Drop for GitHost {
    fn drop(&mut self) {
        self.host.life.end();
        // The listener notices the end only at the next connection.
        let _refused = TcpStream::connect(self.address);
        let ended = self.accepting.take().map(JoinHandle::join);
        if thread::panicking() {
            eprintln!(
                "standard error of the git backend at {}: {}",
                self.address,
                self.host.backend.standard_error()
            );
        } else {
            assert!(!matches!(ended, Some(Err(_))), "a connection of the host panicked, see above");
        }
    }
}

/// Accepts connections until the end, then waits for each.
/// A panic in one becomes a panic here.
fn accept(listener: &TcpListener, host: &Arc<Host>) {
    thread::scope(|scope| {
        for socket in listener.incoming() {
            if host.life.is_over() {
                break;
            }
            let Ok(socket) = socket else { continue };
            if let Some(number) = host.life.enter(&socket) {
                scope.spawn(move || host.serve(socket, number));
            }
        }
    });
}
