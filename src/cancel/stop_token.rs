//! The stop token: cancellation of all work, with a permit that expires.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::boot_time::BootTime;

/// Ends work in all threads.
/// Git processes are ended with their groups, and no new work starts.
///
/// Clones share their state, and a child token is cancelled with its parent. A push that is in flight at the
/// cancellation may succeed all the same; the next run finds out.
#[derive(Clone, Debug, Default)]
pub struct StopToken {
    token: CancellationToken,
    /// The end of the permit to work, if there is one.
    /// Parents and children share it.
    permit: Arc<watch::Sender<Option<BootTime>>>,
}

impl StopToken {
    /// Creates a child token, which is cancelled with this one.
    /// It can also be cancelled without this one, and shares the permit.
    #[must_use]
    pub fn child_token(&self) -> Self {
        Self { token: self.token.child_token(), permit: Arc::clone(&self.permit) }
    }

    /// Cancels this token and its children.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// Returns true if the token is cancelled, or its permit has expired.
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled() || self.permit.borrow().is_some_and(|end| BootTime::now() >= end)
    }

    /// Waits until the token is cancelled or its permit expires.
    ///
    /// The sleep until then does not count time in which the machine is suspended, unlike
    /// [`is_cancelled`](Self::is_cancelled).
    pub async fn cancelled(&self) {
        let mut permit = self.permit.subscribe();
        let expired = async {
            loop {
                let end = *permit.borrow_and_update();
                let left = end.map_or(Duration::MAX, |end| end.since(BootTime::now()));
                if left.is_zero() {
                    return;
                }
                // Ends early when the permit is renewed; this holds a sender, so the channel stays open.
                let _ = timeout(left, permit.changed()).await;
            }
        };
        tokio::select! {
            () = self.token.cancelled() => {}
            () = expired => {}
        }
    }

    /// Permits work until `end`; a later call replaces the end.
    ///
    /// So a holder of a lease need not be awake when the lease expires. Time in which the machine is suspended counts.
    pub fn allow_until(&self, end: BootTime) {
        self.permit.send_replace(Some(end));
    }

    /// Returns the earlier of `requested` and the end of the permit.
    pub fn deadline(&self, requested: Instant) -> Instant {
        let end = self.permit.borrow().map(|end| Instant::now() + end.since(BootTime::now()));
        end.map_or(requested, |end| end.min(requested))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_permit_expires_unless_it_is_renewed() {
        let (stop, now, requested) = (StopToken::default(), BootTime::now(), Instant::now());
        let requested = requested + Duration::from_secs(600);
        assert_eq!(stop.deadline(requested), requested);
        stop.allow_until(now + Duration::from_secs(60));
        assert!(!stop.is_cancelled());
        assert!(stop.deadline(requested) <= Instant::now() + Duration::from_secs(60));
        stop.clone().allow_until(now + Duration::from_secs(6000));
        assert_eq!(stop.deadline(requested), requested);
        // As after a machine was suspended for too long.
        stop.allow_until(now);
        assert!(stop.is_cancelled());
        assert!(stop.deadline(requested) <= Instant::now());
        stop.allow_until(now + Duration::from_secs(6000));
        assert!(!stop.is_cancelled());
        stop.cancel();
        assert!(stop.is_cancelled());
    }

    #[test]
    fn a_child_token_is_cancelled_with_its_parent_and_alone() {
        let (parent, now) = (StopToken::default(), BootTime::now());
        let [one, other] = [parent.child_token(), parent.child_token()];
        one.cancel();
        assert!(one.is_cancelled() && !other.is_cancelled() && !parent.is_cancelled());
        parent.allow_until(now + Duration::from_secs(60));
        let requested = Instant::now() + Duration::from_secs(600);
        assert!(other.deadline(requested) <= Instant::now() + Duration::from_secs(60));
        parent.cancel();
        assert!(other.is_cancelled());
    }

    #[tokio::test]
    async fn a_wait_ends_at_the_cancellation_or_the_end_of_the_permit() {
        let stop = StopToken::default();
        let waiting = tokio::spawn({
            let child = stop.child_token();
            async move { child.cancelled().await }
        });
        tokio::task::yield_now().await;
        stop.allow_until(BootTime::now() + Duration::from_secs(600));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished() && stop.cancelled().now_or_never().is_none());
        stop.allow_until(BootTime::now() + Duration::from_millis(20));
        waiting.await.unwrap();
        stop.allow_until(BootTime::now() + Duration::from_secs(600));
        assert!(stop.cancelled().now_or_never().is_none());
        stop.cancel();
        stop.cancelled().await;
    }
}
