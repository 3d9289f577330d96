//! State of one requester at one repository: its token, challenge and page size.

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::challenge::Challenge;
use super::redact::SentSecrets;
use super::server::Server;
use super::token::Token;

/// The number of tags that are requested per page.
pub(super) const FULL_PAGE: usize = 1000;

/// The state that one requester has learned at one repository.
///
/// It is shared by requests of the same namespace with the same login, secrets and route, and by no others: behind
/// one host each path may be served by another tenant, whose challenge must not get the credentials of its neighbour.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Locked while a token is requested, so that concurrent requests wait for it.
    pub(super) token: tokio::sync::Mutex<Option<Token>>,
    path_state: Mutex<PathState>,
    /// The credentials that were sent last, to be redacted from errors.
    sent_secrets: Mutex<SentSecrets>,
}

/// Properties of one path. They hold until the server is probed anew.
#[derive(Debug, Default)]
struct PathState {
    /// The time of the server's probe that these properties belong to.
    probed_at: Option<Instant>,
    challenge: Option<Challenge>,
    page: Option<usize>,
}

impl Session {
    /// Returns the login challenge of this path, or else that of the server.
    pub(super) fn challenge(&self, server: &Server) -> Option<Challenge> {
        self.path_state(server).challenge.clone().or_else(|| server.challenge.clone())
    }

    /// Stores the challenge of a 401 response of this path.
    pub(super) fn set_challenge(&self, server: &Server, challenge: Challenge) {
        self.path_state(server).challenge = Some(challenge);
    }

    /// Returns the page size of this path; `0` leaves it to the registry.
    pub(super) fn page(&self, server: &Server) -> usize {
        self.path_state(server).page.unwrap_or(FULL_PAGE)
    }

    /// Stores the page size that this path accepted.
    pub(super) fn set_page(&self, server: &Server, page: usize) {
        self.path_state(server).page = Some(page);
    }

    /// Returns the credentials that were sent.
    pub(super) fn sent_secrets(&self) -> MutexGuard<'_, SentSecrets> {
        self.sent_secrets.lock()
    }

    fn path_state(&self, server: &Server) -> MutexGuard<'_, PathState> {
        let mut path_state = self.path_state.lock();
        if path_state.probed_at != Some(server.probed_at) {
            *path_state = PathState { probed_at: Some(server.probed_at), ..PathState::default() };
        }
        path_state
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn server(challenge: Option<Challenge>) -> Server {
        let base = Url::parse("https://r.example/").unwrap();
        Server { base, challenge, probed_at: Instant::now() }
    }

    #[test]
    fn path_state_is_per_session_until_the_server_is_probed_again() {
        let (evil, victim) = (Session::default(), Session::default());
        let asked = server(Some(Challenge::Basic));
        evil.set_challenge(&asked, Challenge::Bearer(Default::default()));
        evil.set_page(&asked, 0);
        assert_eq!(
            (evil.challenge(&asked), evil.page(&asked)),
            (Some(Challenge::Bearer(Default::default())), 0)
        );
        assert_eq!((victim.challenge(&asked), victim.page(&asked)), (Some(Challenge::Basic), FULL_PAGE));
        std::thread::sleep(std::time::Duration::from_millis(2));
        let later = server(None);
        assert_eq!((evil.challenge(&later), evil.page(&later)), (None, FULL_PAGE));
    }
}
