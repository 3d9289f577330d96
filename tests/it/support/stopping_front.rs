//! A front of a forge that holds up the n-th change.
//!
//! The client can be killed there.
//!
//! ```text
//! let front = StoppingFront::before(gitea.port());
//! front.stop_at(3, Moment::After);     // the server handles the fourth change from now on
//! // … start the client …
//! if front.has_stopped() { /* kill the client */ }
//! front.release();                     // requests pass again
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use super::http_front::{Front, Reply};

/// The moment of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The server does not see the request.
    Before,
    /// The server has handled the request, and the client does not get the answer.
    After,
}

/// A front that can be told to stop.
pub(crate) struct StoppingFront {
    front: Front,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Default)]
struct Plan {
    /// The number of changes that still pass, and the moment of the stop.
    rest: Option<(usize, Moment)>,
    /// The request that was held up, as `METHOD /path`.
    stopped_at: Option<String>,
    /// True once the request is held up, and handled if that is wanted.
    is_handled: Arc<AtomicBool>,
    /// True once the held connections are closed.
    is_released: Arc<AtomicBool>,
}

impl StoppingFront {
    pub(crate) fn before(port: u16) -> Self {
        let plan = Arc::<Mutex<Plan>>::default();
        let shared = Arc::clone(&plan);
        let front = Front::before(port, move |request| {
            let is_change = request.method != "GET" && !request.path.ends_with("/git-upload-pack");
            let released = {
                let plan = &mut *shared.lock().unwrap();
                let Some((rest, moment)) = &mut plan.rest else { return Reply::Forward };
                let until = Arc::clone(&plan.is_released);
                // Those that come after the stop are held up too.
                if plan.stopped_at.is_none() {
                    if !is_change || *rest > 0 {
                        *rest -= usize::from(is_change);
                        return Reply::Forward;
                    }
                    plan.stopped_at = Some(format!("{} {}", request.method, request.path));
                    if *moment == Moment::After {
                        return Reply::Unanswered { is_handled: Arc::clone(&plan.is_handled), until };
                    }
                    plan.is_handled.store(true, Ordering::SeqCst);
                }
                until
            };
            while !released.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(5));
            }
            Reply::Gone
        });
        Self { front, plan }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> String {
        self.front.address()
    }

    /// Lets some changes pass, and holds up the next one and all later requests.
    pub(crate) fn stop_at(&self, passing: usize, moment: Moment) {
        *self.plan.lock().unwrap() = Plan { rest: Some((passing, moment)), ..Plan::default() };
    }

    /// The request that is held up.
    ///
    /// With [`Moment::After`] there is none until the server has handled it.
    pub(crate) fn stopped_at(&self) -> Option<String> {
        let plan = self.plan.lock().unwrap();
        plan.stopped_at.clone().filter(|_| plan.is_handled.load(Ordering::SeqCst))
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped_at().is_some()
    }

    /// Closes the held connections, and lets all later requests pass.
    pub(crate) fn release(&self) {
        let plan = &mut *self.plan.lock().unwrap();
        plan.is_released.store(true, Ordering::SeqCst);
        *plan = Plan::default();
    }
}

impl Drop for StoppingFront {
    fn drop(&mut self) {
        self.release();
    }
}
