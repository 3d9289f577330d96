//! Faults of a git host, by operation.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::request::Request;

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    /// `GET …/info/refs?service=git-upload-pack`.
    ListForFetch,
    /// `POST …/git-upload-pack`: of protocol 2 both `ls-refs` and `fetch`.
    Fetch,
    /// `GET …/info/refs?service=git-receive-pack`.
    ListForPush,
    /// `POST …/git-receive-pack` with commands in it.
    /// It is not the empty request by which git finds out whether it may send a large body.
    Push,
}

impl Operation {
    /// The operation, and the path of the repository.
    pub(super) fn of(request: &Request) -> Option<(Self, &str)> {
        for (tail, query, operation) in [
            ("/info/refs", "service=git-upload-pack", Self::ListForFetch),
            ("/git-upload-pack", "", Self::Fetch),
            ("/info/refs", "service=git-receive-pack", Self::ListForPush),
            ("/git-receive-pack", "", Self::Push),
        ] {
            if let Some(repository) = request.path.strip_suffix(tail)
                && request.query == query
            {
                let is_probe = operation == Self::Push && request.body_size <= b"0000".len();
                return (!is_probe).then_some((operation, repository));
            }
        }
        None
    }
}

/// A fault of a request that was admitted.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Redirects to the same operation of the repository at another URL.
    Redirect { status: u16, to: String },
    /// Answers late.
    Delay(Duration),
    /// Answers with a status of 400 or more.
    Status(u16),
    /// Never answers, and does nothing.
    Hang,
    /// Does the work, but never answers.
    /// So a client's deadline passes after the pack was accepted.
    HangAfterwards,
    /// Resets the connection, and does nothing.
    Reset,
    /// Does the work, then resets the connection before anything is answered.
    ResetAfterwards,
}

/// A hook that runs just before a request is forwarded.
pub(super) type Meanwhile = Arc<dyn Fn() + Send + Sync>;

/// The faults that are switched on.
#[derive(Default)]
pub(super) struct Plan {
    once: HashMap<Operation, VecDeque<Fault>>,
    always: HashMap<Operation, Fault>,
    meanwhile: HashMap<Operation, Meanwhile>,
    moves: HashMap<String, String>,
}

impl Plan {
    pub(super) fn once(&mut self, operation: Operation, fault: Fault) {
        self.once.entry(operation).or_default().push_back(fault);
    }

    pub(super) fn always(&mut self, operation: Operation, fault: Fault) {
        self.always.insert(operation, fault);
    }

    pub(super) fn meanwhile(&mut self, operation: Operation, meanwhile: Meanwhile) {
        self.meanwhile.insert(operation, meanwhile);
    }

    pub(super) fn moved(&mut self, from: String, to: String) {
        self.moves.insert(from, to);
    }

    /// The redirect of a repository that has moved.
    pub(super) fn move_of(&self, repository: &str) -> Option<Fault> {
        let to = self.moves.get(repository)?;
        Some(Fault::Redirect { status: 301, to: to.clone() })
    }

    /// The hook before the next request of an operation, and the fault of that request.
    pub(super) fn next(&mut self, operation: Operation) -> (Option<Meanwhile>, Option<Fault>) {
        let once = self.once.get_mut(&operation).and_then(VecDeque::pop_front);
        (self.meanwhile.get(&operation).cloned(), once.or_else(|| self.always.get(&operation).cloned()))
    }
}
