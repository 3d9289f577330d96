//! Who of several controllers may write: a Lease, taken and kept as Kubernetes' own controllers do it.

use std::future::pending;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::{sleep, timeout};

use crate::cancel::{BootTime, StopToken};
use crate::objects::cluster::{ClusterError, Gate};

/// How long giving the Lease back may take.
const PARTING: Duration = Duration::from_secs(1);

/// How a Lease is taken and kept.
#[derive(Clone, Debug)]
pub struct Election {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who we are; no other process may have this name.
    pub identity: String,
    /// How long others wait after a renewal before they take it.
    pub duration: Duration,
    /// How long we go on without a renewal; less than the others wait.
    pub renew_deadline: Duration,
    /// The time between two tries.
    pub retry_period: Duration,
    /// Whether it is given back at the end.
    pub is_released: bool,
}

/// The right to write: won by election, or ours from the beginning where there is none.
pub(super) struct Leadership {
    candidate: Option<Candidate>,
    permit: StopToken,
}

impl Leadership {
    /// Work goes on for as long as `permit` allows it, which is told what becomes of the election.
    pub(super) fn new(client: Client, election: Option<Election>, permit: StopToken) -> Self {
        Self { candidate: election.map(|election| Candidate::new(client, election)), permit }
    }

    /// Waits until we lead.
    pub(super) async fn win(&mut self) {
        if let Some(candidate) = &mut self.candidate {
            candidate.win(&self.permit).await;
        }
    }

    /// Keeps it until that fails, and says why it did.
    pub(super) async fn keep(&mut self) -> String {
        match &mut self.candidate {
            Some(candidate) => words(&candidate.keep(&self.permit).await),
            None => pending().await,
        }
    }

    /// Gives it back, so that another need not wait until it runs out.
    pub(super) async fn give_back(self) {
        let Some(mut candidate) = self.candidate else { return };
        let error = match timeout(PARTING, candidate.give_back()).await {
            Ok(given) => given.err(),
            Err(_) => Some(ClusterError::Silent(PARTING)),
        };
        if let Some(error) = error {
            tracing::error!(error = %error, "cannot give the lease back; others take it when it has run out");
        }
    }
}

/// One who stands for election, and what it knows of the Lease.
struct Candidate {
    api: Api<Lease>,
    /// A way of its own, for others must not keep us from renewing.
    gate: Gate,
    election: Election,
    /// The Lease as it was last seen, and when that state was first seen. Clocks of others are not trusted.
    seen: Option<(LeaseSpec, BootTime)>,
}

/// Why a try did not make us the leader.
#[derive(Debug)]
enum Setback {
    /// Another is.
    HeldBy(String),
    /// The Lease cannot be read or written.
    Trouble(ClusterError),
}

impl Candidate {
    fn new(client: Client, election: Election) -> Self {
        let api = Api::namespaced(client, &election.namespace);
        Self { api, gate: Gate::default(), election, seen: None }
    }

    /// Waits until we lead, and lets work go on for as long as that lasts.
    async fn win(&mut self, permit: &StopToken) {
        let mut said = String::new();
        let place = format!("{}/{}", self.election.namespace, self.election.name);
        tracing::info!(lease = place, "waiting to become the leader");
        loop {
            match self.renew(permit).await {
                Ok(()) => {
                    tracing::info!(lease = place, "became the leader");
                    return;
                }
                Err(setback) => {
                    let (error, words) = match setback {
                        Setback::HeldBy(holder) => (false, format!("{holder} is the leader")),
                        Setback::Trouble(error) => (true, error.to_string()),
                    };
                    if words != said {
                        match error {
                            true => tracing::error!(lease = place, error = words, "cannot become the leader"),
                            false => tracing::info!(lease = place, "{words}"),
                        }
                        said = words;
                    }
                }
            }
            sleep(self.election.retry_period).await;
        }
    }

    /// Keeps the Lease until that fails, and says why it did. Work has ended by then, or is just being ended.
    async fn keep(&mut self, permit: &StopToken) -> Setback {
        let mut renewed = BootTime::now();
        loop {
            sleep(self.election.retry_period).await;
            let left = self.election.renew_deadline.saturating_sub(renewed.elapsed());
            let begin = BootTime::now();
            let setback = match timeout(left, self.renew(permit)).await {
                Ok(Ok(())) => {
                    renewed = begin;
                    continue;
                }
                Ok(Err(setback)) => setback,
                Err(_) => Setback::Trouble(ClusterError::Silent(self.election.renew_deadline)),
            };
            let is_over = renewed.elapsed() + self.election.retry_period >= self.election.renew_deadline;
            if is_over || matches!(setback, Setback::HeldBy(_)) {
                permit.cancel();
                return setback;
            }
            tracing::warn!(error = %words(&setback), "cannot renew the lease, trying again");
        }
    }

    /// Gives the Lease back, so that another need not wait until it runs out.
    async fn give_back(&mut self) -> Result<(), ClusterError> {
        if !self.election.is_released {
            return Ok(());
        }
        let mut lease = self.gate.answer(&self.election.namespace, self.api.get(&self.election.name)).await?;
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
        self.gate.answer(&self.election.namespace, replaced).await?;
        Ok(())
    }

    /// Takes or renews the Lease, if it is ours to take.
    async fn renew(&mut self, permit: &StopToken) -> Result<(), Setback> {
        let begin = BootTime::now();
        let Election { name, namespace, .. } = self.election.clone();
        let found = self.gate.answer(&namespace, self.api.get_opt(&name)).await.map_err(Setback::Trouble)?;
        let parameters = PostParams::default();
        let written = match found {
            None => {
                let metadata =
                    ObjectMeta { name: Some(name), namespace: Some(namespace.clone()), ..Default::default() };
                let spec = claim(&self.election, None, Timestamp::now());
                let lease = Lease { metadata, spec: Some(spec) };
                self.gate.answer(&namespace, self.api.create(&parameters, &lease)).await
            }
            Some(mut lease) => {
                let spec = lease.spec.take().unwrap_or_default();
                let since = match &self.seen {
                    Some((seen, since)) if *seen == spec => *since,
                    _ => begin,
                };
                self.seen = Some((spec.clone(), since));
                if let Some(holder) = holder(&spec, &self.election.identity, begin.since(since)) {
                    return Err(Setback::HeldBy(holder));
                }
                lease.spec = Some(claim(&self.election, Some(&spec), Timestamp::now()));
                self.gate.answer(&namespace, self.api.replace(&name, &parameters, &lease)).await
            }
        };
        let written = written.map_err(Setback::Trouble)?;
        self.seen = written.spec.map(|spec| (spec, begin));
        permit.allow_until(begin + self.election.renew_deadline);
        Ok(())
    }
}

/// Why a leader is none any more.
fn words(setback: &Setback) -> String {
    match setback {
        Setback::HeldBy(holder) => format!("{holder} is the leader now"),
        Setback::Trouble(error) => error.to_string(),
    }
}

/// Who else has the Lease and may keep it, when it has been seen as it is for this long.
fn holder(spec: &LeaseSpec, identity: &str, age: Duration) -> Option<String> {
    let holder =
        spec.holder_identity.as_deref().filter(|holder| !holder.is_empty() && *holder != identity)?;
    let duration = u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
    (age < Duration::from_secs(duration)).then(|| holder.to_owned())
}

/// The Lease as it is when it is ours.
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
    fn a_lease_is_taken_when_nobody_holds_it_or_its_holder_is_silent() {
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
