//! The availability of a cluster: does it answer requests?

use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::Client;
use tokio::time::timeout;

use super::error::ClusterError;

/// The time between two requests that find out whether a cluster answers.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(15);

/// The pauses before the requests that confirm the refusal of a kind that was served.
///
/// An API server that starts does not know all roles and kinds yet.
pub const CONFIRMATIONS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(10)];

/// The time that one request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The time without an answer after which a cluster counts as down.
const SILENCE: Duration = Duration::from_secs(60);

/// The silence of a cluster: the time since which its requests have no answer.
#[derive(Debug, Default)]
pub struct Silence {
    /// The first request without an answer, by the monotonic clock and by the other.
    since: Option<(Instant, Timestamp)>,
}

impl Silence {
    /// Records a request, and returns the time since which the cluster is down.
    ///
    /// It is `None` for a cluster that has answered in the last minute.
    ///
    /// `now` and `time` are the same moment. A clock that is set forward or back ends no silence and begins none.
    pub fn after(&mut self, is_answered: bool, now: Instant, time: Timestamp) -> Option<Timestamp> {
        if is_answered {
            self.since = None;
            return None;
        }
        let (since, first) = *self.since.get_or_insert((now, time));
        (now.saturating_duration_since(since) >= SILENCE).then_some(first)
    }
}

/// Requests the version of a cluster.
///
/// A refusal by its role is an answer. An error of a proxy or of the server is none, nor is a refused login.
///
/// # Errors
///
/// If there is no answer.
pub async fn probe(client: &Client) -> Result<(), ClusterError> {
    match timeout(TIMEOUT, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if status.code < 500 && status.code != 401 => Ok(()),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(ClusterError::Timeout(TIMEOUT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_down_after_a_minute_without_an_answer() {
        let mut silence = Silence::default();
        let at = |second: u64| Timestamp::from_second(second.try_into().unwrap()).unwrap();
        let start = Instant::now();
        for (second, is_answered, expected) in [
            (0, true, None),
            (20, false, None),
            (79, false, None),
            (80, false, Some(at(20))),
            (200, false, Some(at(20))),
            (201, true, None),
            (202, false, None),
            (261, false, None),
        ] {
            let now = start + Duration::from_secs(second);
            assert_eq!(silence.after(is_answered, now, at(second)), expected, "{second}");
        }
    }

    #[test]
    fn a_clock_that_is_set_changes_no_silence() {
        let (mut silence, start) = (Silence::default(), Instant::now());
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        assert_eq!(silence.after(false, start, at(10_000)), None);
        assert_eq!(silence.after(false, start + Duration::from_secs(15), at(20_000)), None);
        assert_eq!(silence.after(false, start + Duration::from_secs(60), at(5_000)), Some(at(10_000)));
    }
}
