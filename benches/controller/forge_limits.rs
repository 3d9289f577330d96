//! The rate limits of GitHub, in front of its test server.

use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::forges::github::respond;
use crate::support::forges::hub::{AUTHORIZATION, Call, Hub, answer};
use crate::support::git_host::request::Request;
use crate::support::http_front::{Front, Reply};

const MINUTE: Duration = Duration::from_secs(60);

/// The calls so far, and the number of those that were refused.
#[derive(Default)]
pub(crate) struct Limits {
    creating: VecDeque<Instant>,
    /// Times and points.
    points: VecDeque<(Instant, usize)>,
    calls: usize,
    pub(crate) refused: usize,
    pub(crate) unchanged: usize,
}

impl Limits {
    /// Counts a call, or returns the refusal.
    ///
    /// 80 creating calls and 900 points a minute are allowed, and 5,000 calls an hour. A write has five points.
    fn admit(&mut self, method: &str) -> Option<Reply> {
        let now = Instant::now();
        let is_old = |time: &Instant| now.duration_since(*time) > MINUTE;
        while self.creating.front().is_some_and(is_old) {
            self.creating.pop_front();
        }
        while self.points.front().is_some_and(|(time, _)| is_old(time)) {
            self.points.pop_front();
        }
        let cost = if method == "GET" { 1 } else { 5 };
        let is_creating = method == "POST";
        let spent: usize = self.points.iter().map(|(_, points)| points).sum();
        if (is_creating && self.creating.len() >= 80) || spent + cost > 900 {
            self.refused += 1;
            let text =
                "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
            return Some(answer(403, &serde_json::json!({"message": text})).with("Retry-After", "60"));
        }
        if self.calls >= 5_000 {
            self.refused += 1;
            return Some(answer(403, &serde_json::json!({"message": "API rate limit exceeded"})));
        }
        self.calls += 1;
        self.points.push_back((now, cost));
        if is_creating {
            self.creating.push_back(now);
        }
        None
    }
}

/// Starts the test server behind its limits.
pub(crate) fn serve(hub: &Arc<Hub>) -> (Front, Arc<Mutex<Limits>>) {
    let limits = Arc::<Mutex<Limits>>::default();
    let (hub, kept) = (Arc::clone(hub), Arc::clone(&limits));
    let front = Front::alone(move |request| {
        if request.authorization() != Some(AUTHORIZATION) {
            return answer(401, &serde_json::json!({"message": "Bad credentials"}));
        }
        let mut limits = kept.lock().unwrap();
        if let Some(refusal) = limits.admit(&request.method) {
            return refusal;
        }
        let reply = with_limits(&limits, tagged(request, respond(&hub, &call(request))));
        if let Reply::Answer { status: 304, .. } = &reply {
            // It does not count for the limit of an hour.
            limits.calls -= 1;
            limits.unchanged += 1;
        }
        reply
    });
    (front, limits)
}

/// The call below the base URL.
fn call(request: &Request) -> Call {
    let mut call = Call::of(request);
    for part in ["api", "v3"] {
        if call.path.first().is_some_and(|first| first == part) {
            call.path.remove(0);
        }
    }
    call
}

/// Answers a conditional request.
fn tagged(request: &Request, reply: Reply) -> Reply {
    let Reply::Answer { status: 200, body, .. } = &reply else { return reply };
    if request.method != "GET" {
        return reply;
    }
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    if request.header("if-none-match") == Some(&tag) {
        return Reply::status(304).with("ETag", &tag);
    }
    reply.with("ETag", &tag)
}

fn with_limits(limits: &Limits, reply: Reply) -> Reply {
    let left = 5_000 - limits.calls;
    reply.with("X-RateLimit-Limit", "5000").with("X-RateLimit-Remaining", &left.to_string())
}
