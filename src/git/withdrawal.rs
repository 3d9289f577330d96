//! The word that a proposal is not wanted any more.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells whoever works on a proposal to give it up: its git processes are ended, and nothing is pushed for it from then
/// on.
///
/// Clones are one and the same word. A push that is under way when it is given may arrive all the same.
#[derive(Clone, Debug, Default)]
pub struct Withdrawal(Arc<watch::Sender<State>>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    is_given: bool,
    is_worked_on: bool,
}

/// The work on a proposal, which is over when this is dropped.
#[derive(Debug)]
pub(super) struct WorkedOn(Withdrawal);

impl Withdrawal {
    /// Gives the word.
    pub fn give(&self) {
        self.0.send_modify(|state| state.is_given = true);
    }

    /// Whether it was given.
    pub fn is_given(&self) -> bool {
        self.0.borrow().is_given
    }

    /// Waits until it has been given.
    pub async fn given(&self) {
        // We hold the sending end ourselves, so the wait ends with its condition.
        let _ = self.0.subscribe().wait_for(|state| state.is_given).await;
    }

    /// Waits until it has been given and nobody works on the proposal, so that nothing can become of it any more.
    pub async fn settled(&self) {
        let _ = self.0.subscribe().wait_for(|state| state.is_given && !state.is_worked_on).await;
    }

    /// Begins to work on the proposal, unless the word has been given.
    pub(super) fn begin(&self) -> Option<WorkedOn> {
        let has_begun = self.0.send_if_modified(|state| {
            state.is_worked_on = !state.is_given;
            state.is_worked_on
        });
        has_begun.then(|| WorkedOn(self.clone()))
    }

    /// Ends the work on the proposal, before or when whoever began it is done.
    pub(super) fn end(&self) {
        self.0.send_modify(|state| state.is_worked_on = false);
    }
}

impl Drop for WorkedOn {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn one_that_is_worked_on_is_settled_when_that_is_over() {
        let word = Withdrawal::default();
        let work = word.begin().unwrap();
        word.clone().give();
        assert!(word.is_given() && word.given().now_or_never().is_some());
        assert!(word.settled().now_or_never().is_none());
        drop(work);
        assert!(word.settled().now_or_never().is_some());
        // Nobody begins any more.
        assert!(word.begin().is_none());
        assert!(word.settled().now_or_never().is_some());
    }

    #[test]
    fn one_that_is_let_go_is_settled_though_others_are_still_worked_on() {
        let word = Withdrawal::default();
        let _work = word.begin();
        word.give();
        word.end();
        assert!(word.settled().now_or_never().is_some());
    }

    #[test]
    fn one_that_is_wanted_may_be_worked_on_again() {
        let word = Withdrawal::default();
        for _ in 0..2 {
            drop(word.begin().unwrap());
            assert!(word.settled().now_or_never().is_none());
        }
    }
}
