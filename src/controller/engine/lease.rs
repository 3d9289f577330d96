//! Leader election: a Lease that is taken and renewed as Kubernetes' own controllers do it.

use std::future::pending;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::{sleep, timeout};

use crate::cancel::{BootTime, StopToken};
use crate::objects::cluster::{ApiGuard, ClusterError};

/// The time that the release of the Lease may take.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// The settings of a leader election.
#[derive(Clone, Debug)]
pub struct Election {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The identity of this process, which no other process has.
    pub identity: String,
    /// The time after a renewal from which on other processes take the Lease.
    pub duration: Duration,
    /// The time for which this process remains the leader without a renewal; less than `duration`.
    pub renew_deadline: Duration,
    /// The time between two tries.
    pub retry_period: Duration,
    /// True if the Lease is released at the end.
    pub is_released: bool,
}

/// The leadership of this process: won by an election, or without one from the beginning.
pub(super) struct Leadership {
    candidate: Option<Candidate>,
    permit: StopToken,
}

impl Leadership {
    /// Creates a candidate.
    ///
    /// `permit` allows work in the cluster for as long as the leadership lasts.
    pub(super) fn new(client: Client, election: Option<Election>, permit: StopToken) -> Self {
        Self { candidate: election.map(|election| Candidate::new(client, election)), permit }
    }

    /// Waits until this process is the leader.
    pub(super) async fn win(&mut self) {
        if let Some(candidate) = &mut self.candidate {
            candidate.win(&self.permit).await;
        }
    }

    /// Renews the Lease until that fails, and returns the reason.
    pub(super) async fn keep(&mut self) -> String {
        match &mut self.candidate {
            Some(candidate) => message_of(&candidate.keep(&self.permit).await),
            None => pending().await,
        }
    }

    /// Releases the Lease, so that another process need not wait until it expires.
    pub(super) async fn release(self) {
        let Some(mut candidate) = self.candidate else { return };
        let error = match timeout(RELEASE_TIMEOUT, candidate.release()).await {
            Ok(released) => released.err(),
            Err(_) => Some(ClusterError::Timeout(RELEASE_TIMEOUT)),
        };
        if let Some(error) = error {
            tracing::error!(error = %error, "cannot release the lease; it expires after its duration");
        }
    }
}

/// A candidate of the election, with the last seen state of the Lease.
struct Candidate {
    api: Api<Lease>,
    /// A guard of its own, so that other requests do not delay a renewal.
    guard: ApiGuard,
    election: Election,
    /// The last seen Lease, with the time at which that state was first seen.
    ///
    /// The clocks of other processes are not trusted.
    seen: Option<(LeaseSpec, BootTime)>,
}

/// The error of a try to take or renew the Lease.
#[derive(Debug)]
enum RenewError {
    /// Another process is the leader.
    HeldBy(String),
    /// The Lease cannot be read or written.
    Failed(ClusterError),
}

impl Candidate {
    fn new(client: Client, election: Election) -> Self {
        let api = Api::namespaced(client, &election.namespace);
        Self { api, guard: ApiGuard::default(), election, seen: None }
    }

    /// Waits until this process is the leader.
    ///
    /// Work is permitted for as long as the leadership lasts.
    async fn win(&mut self, permit: &StopToken) {
        let mut logged = String::new();
        let name = format!("{}/{}", self.election.namespace, self.election.name);
        tracing::info!(lease = name, "waiting to become the leader");
        loop {
            match self.renew(permit).await {
                Ok(()) => {
                    tracing::info!(lease = name, "became the leader");
                    return;
                }
                Err(error) => {
                    let (is_error, message) = match error {
                        RenewError::HeldBy(holder) => (false, format!("{holder} is the leader")),
                        RenewError::Failed(error) => (true, error.to_string()),
                    };
                    if message != logged {
                        match is_error {
                            true => {
                                tracing::error!(lease = name, error = message, "cannot become the leader");
                            }
                            false => tracing::info!(lease = name, "{message}"),
                        }
                        logged = message;
                    }
                }
            }
            sleep(self.election.retry_period).await;
        }
    }

    /// Renews the Lease until that fails, and returns the reason.
    ///
    /// Work is not permitted any more by then.
    async fn keep(&mut self, permit: &StopToken) -> RenewError {
        let mut renewed = BootTime::now();
        loop {
            sleep(self.election.retry_period).await;
            let left = self.election.renew_deadline.saturating_sub(renewed.elapsed());
            let begin = BootTime::now();
            let error = match timeout(left, self.renew(permit)).await {
                Ok(Ok(())) => {
                    renewed = begin;
                    continue;
                }
                Ok(Err(error)) => error,
                Err(_) => RenewError::Failed(ClusterError::Timeout(self.election.renew_deadline)),
            };
            let is_over = renewed.elapsed() + self.election.retry_period >= self.election.renew_deadline;
            if is_over || matches!(error, RenewError::HeldBy(_)) {
                permit.cancel();
                return error;
            }
            tracing::warn!(error = %message_of(&error), "cannot renew the lease, retrying");
        }
    }

    /// Releases the Lease, so that another process need not wait until it expires.
    async fn release(&mut self) -> Result<(), ClusterError> {
        if !self.election.is_released {
            return Ok(());
        }
        let mut lease = self.guard.send(&self.election.namespace, self.api.get(&self.election.name)).await?;
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(self.election.identity.as_str()) {
            return Ok(());
        }
        let now = MicroTime(Timestamp::now());
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        (spec.acquire_time, spec.renew_time) = (Some(now.clone()), Some(now));
        let parameters = PostParams::default();
        let replaced = self.api.replace(&self.election.name, &parameters, &lease);
        self.guard.send(&self.election.namespace, replaced).await?;
        Ok(())
    }

    /// Takes or renews the Lease, unless another process holds it.
    async fn renew(&mut self, permit: &StopToken) -> Result<(), RenewError> {
        let begin = BootTime::now();
        let Election { name, namespace, .. } = self.election.clone();
        let found = self.guard.send(&namespace, self.api.get_opt(&name)).await.map_err(RenewError::Failed)?;
        let parameters = PostParams::default();
        let written = match found {
            None => {
                let metadata =
                    ObjectMeta { name: Some(name), namespace: Some(namespace.clone()), ..Default::default() };
                let spec = claim(&self.election, None, Timestamp::now());
                let lease = Lease { metadata, spec: Some(spec) };
                self.guard.send(&namespace, self.api.create(&parameters, &lease)).await
            }
            Some(mut lease) => {
                let spec = lease.spec.take().unwrap_or_default();
                let since = match &self.seen {
                    Some((seen, since)) if *seen == spec => *since,
                    _ => begin,
                };
                self.seen = Some((spec.clone(), since));
                if let Some(holder) = holder(&spec, &self.election.identity, begin.since(since)) {
                    return Err(RenewError::HeldBy(holder));
                }
                lease.spec = Some(claim(&self.election, Some(&spec), Timestamp::now()));
                self.guard.send(&namespace, self.api.replace(&name, &parameters, &lease)).await
            }
        };
        let written = written.map_err(RenewError::Failed)?;
        self.seen = written.spec.map(|spec| (spec, begin));
        permit.allow_until(begin + self.election.renew_deadline);
        Ok(())
    }
}

/// Returns the reason for which a process is not the leader any more.
fn message_of(error: &RenewError) -> String {
    match error {
        RenewError::HeldBy(holder) => format!("{holder} is the leader now"),
        RenewError::Failed(error) => error.to_string(),
    }
}

/// Returns the other holder of the Lease, unless its Lease has expired.
///
/// It expires if the holder is silent for the duration of the Lease.
fn holder(spec: &LeaseSpec, identity: &str, age: Duration) -> Option<String> {
    let holder =
        spec.holder_identity.as_deref().filter(|holder| !holder.is_empty() && *holder != identity)?;
    let duration = u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
    (age < Duration::from_secs(duration)).then(|| holder.to_owned())
}

/// Makes the Lease as this process holds it.
fn claim(election: &Election, before: Option<&LeaseSpec>, now: Timestamp) -> LeaseSpec {
    let own = before.filter(|spec| spec.holder_identity.as_deref() == Some(election.identity.as_str()));
    let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
    let seconds = i32::try_from(election.duration.as_secs()).unwrap_or(i32::MAX);
    LeaseSpec {
        holder_identity: Some(election.identity.clone()),
        lease_duration_seconds: Some(seconds),
        acquire_time: own.and_then(|spec| spec.acquire_time.clone()).or(Some(MicroTime(now))),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(match (before, own) {
            (None, _) => 0,
            (Some(_), Some(_)) => transitions,
            (Some(_), None) => transitions.saturating_add(1),
        }),
        ..before.cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::lease_name;

    fn election() -> Election {
        Election {
            namespace: "n".to_owned(),
            name: lease_name("image-automation-controller", None),
            identity: "me".to_owned(),
            duration: Duration::from_secs(35),
            renew_deadline: Duration::from_secs(30),
            retry_period: Duration::from_secs(5),
            is_released: true,
        }
    }

    #[test]
    fn a_lease_without_a_holder_or_with_a_silent_one_is_taken() {
        let seconds = Duration::from_secs;
        let held = |holder: Option<&str>| LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: Some(35),
            ..Default::default()
        };
        for (spec, age, expected) in [
            (held(None), seconds(0), None),
            (held(Some("")), seconds(0), None),
            (held(Some("me")), seconds(0), None),
            (held(Some("other")), seconds(0), Some("other")),
            (held(Some("other")), seconds(34), Some("other")),
            (held(Some("other")), seconds(35), None),
        ] {
            assert_eq!(holder(&spec, "me", age).as_deref(), expected, "{spec:?} {age:?}");
        }
    }

    #[test]
    fn a_claim_counts_how_often_the_holder_changed() {
        let (early, late): (Timestamp, Timestamp) =
            ("2026-01-01T00:00:00Z".parse().unwrap(), "2026-01-01T00:00:05Z".parse().unwrap());
        let first = claim(&election(), None, early);
        assert_eq!((first.lease_transitions, first.acquire_time.clone()), (Some(0), Some(MicroTime(early))));
        let renewed = claim(&election(), Some(&first), late);
        assert_eq!((renewed.lease_transitions, renewed.acquire_time), (Some(0), Some(MicroTime(early))));
        assert_eq!(renewed.renew_time, Some(MicroTime(late)));
        let other = Election { identity: "other".to_owned(), ..election() };
        let taken = claim(&other, Some(&first), late);
        assert_eq!((taken.lease_transitions, taken.acquire_time), (Some(1), Some(MicroTime(late))));
        assert_eq!(taken.lease_duration_seconds, Some(35));
    }
}
