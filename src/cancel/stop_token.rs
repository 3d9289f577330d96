//! The stop token: cancellation of all work, with a permit that expires.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::boot_time::BootTime;

/// Ends work in all threads. Git processes are ended with their groups, and no new work starts.
///
/// Clones share their state. A push that is in flight at the cancellation may succeed all the same; the next run finds
/// out.
#[derive(Clone, Debug, Default)]
pub struct StopToken(Arc<Words>);

#[derive(Debug, Default)]
struct Words {
    is_cancelled: AtomicBool,
    /// The end of the permit to work, if there is one.
    end: Mutex<Option<BootTime>>,
    /// The parent, with which this token is cancelled.
    superior: Option<StopToken>,
}

impl StopToken {
    /// Creates a token that is cancelled with this one, and can be cancelled without it.
    #[must_use]
    pub fn child_token(&self) -> Self {
        Self(Arc::new(Words { superior: Some(self.clone()), ..Words::default() }))
    }

    /// Cancels this token and its children.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns true if the token is cancelled, or its permit has expired.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Relaxed)
            || self.0.superior.as_ref().is_some_and(Self::is_cancelled)
            || self.end().is_some_and(|end| BootTime::now() >= end)
    }

    /// Permits work until `end`; a later call replaces the end. So a holder of a lease need not be awake when the lease
    /// expires. Time in which the machine is suspended counts.
    pub fn allow_until(&self, end: BootTime) {
        *self.0.end.lock() = Some(end);
    }

    /// Returns the earlier of `wanted` and the end of the permit.
    pub fn deadline(&self, wanted: Instant) -> Instant {
        let end = self.end().map(|end| Instant::now() + end.since(BootTime::now()));
        end.map_or(wanted, |end| end.min(wanted))
    }

    fn end(&self) -> Option<BootTime> {
        let own = *self.0.end.lock();
        let of_superior = self.0.superior.as_ref().and_then(Self::end);
        own.into_iter().chain(of_superior).min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_permit_runs_out_unless_it_is_renewed() {
        let (stop, now, wanted) = (StopToken::default(), BootTime::now(), Instant::now());
        let wanted = wanted + Duration::from_secs(600);
        assert_eq!(stop.deadline(wanted), wanted);
        stop.allow_until(now + Duration::from_secs(60));
        assert!(!stop.is_cancelled());
        assert!(stop.deadline(wanted) <= Instant::now() + Duration::from_secs(60));
        stop.clone().allow_until(now + Duration::from_secs(6000));
        assert_eq!(stop.deadline(wanted), wanted);
        // As after a machine was suspended for too long.
        stop.allow_until(now);
        assert!(stop.is_cancelled());
        assert!(stop.deadline(wanted) <= Instant::now());
        stop.allow_until(now + Duration::from_secs(6000));
        assert!(!stop.is_cancelled());
        stop.cancel();
        assert!(stop.is_cancelled());
    }

    #[test]
    fn a_subordinate_stops_with_its_superior_and_alone() {
        let (superior, now) = (StopToken::default(), BootTime::now());
        let [one, other] = [superior.child_token(), superior.child_token()];
        one.cancel();
        assert!(one.is_cancelled() && !other.is_cancelled() && !superior.is_cancelled());
        superior.allow_until(now + Duration::from_secs(60));
        let wanted = Instant::now() + Duration::from_secs(600);
        assert!(other.deadline(wanted) <= Instant::now() + Duration::from_secs(60));
        superior.cancel();
        assert!(other.is_cancelled());
    }
}
