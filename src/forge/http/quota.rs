//! The rate limits that a server states in its responses.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::forge::exchange::Cost;
use crate::net::{retry_after, tells_rate_limit};

/// The first pause after a rate limit without a time. It doubles with each.
const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// The maximum pause. A server that limits for longer is asked again.
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// The maximum number of limits of one token, such as those of REST and GraphQL.
const MAX_RESOURCES: usize = 8;

/// The smallest number of seconds that is a point in time and not a duration.
const EPOCH: i64 = 1_000_000_000;

/// The rate limits of one token at one server, as far as its responses told.
#[derive(Debug, Default)]
pub(super) struct Quota {
    /// No request is sent before this time.
    paused_until: Option<Timestamp>,
    /// The number of consecutive rate limits without a time.
    untimed: u32,
    /// The state by resource; empty for servers with one limit.
    resources: BTreeMap<String, Resource>,
}

/// The state of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Resource {
    limit: u64,
    remaining: u64,
    reset: Timestamp,
}

/// The parts of a response that concern rate limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitedResponse<'r> {
    /// The status.
    pub(super) status: u16,
    /// The headers, with names in lower case.
    pub(super) headers: &'r [(String, String)],
    /// The server's message, if there is one.
    pub(super) message: &'r str,
    /// The limit that the request counts for; empty for servers with one limit.
    pub(super) resource: &'r str,
}

impl LimitedResponse<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim())
    }

    /// The value of `X-RateLimit-NAME` or `RateLimit-NAME`.
    fn number(&self, name: &str) -> Option<i64> {
        let value = self.header(&format!("x-ratelimit-{name}"));
        value.or_else(|| self.header(&format!("ratelimit-{name}")))?.parse().ok()
    }

    fn resource(&self) -> Option<Resource> {
        let (limit, remaining) = (self.number("limit")?, self.number("remaining")?);
        Some(Resource {
            limit: limit.try_into().ok()?,
            remaining: remaining.try_into().unwrap_or_default(),
            reset: Timestamp::UNIX_EPOCH,
        })
    }

    /// Returns true if the server refuses the request because of a rate limit.
    pub(super) fn is_limited(&self) -> bool {
        // GitHub answers 403 to both of its limits, and 429 to a few.
        let is_refused = self.status == 403;
        let is_stated = self.header("retry-after").is_some() || self.number("remaining") == Some(0);
        let is_said = tells_rate_limit(self.message);
        let is_overloaded = self.status == 503 && self.header("retry-after").is_some();
        self.status == 429 || is_overloaded || is_refused && (is_stated || is_said)
    }

    /// The name of the limit.
    ///
    /// Azure DevOps has the same header, with names of parts of the server, and one limit.
    fn name(&self) -> &str {
        let named = || self.header("x-ratelimit-resource").filter(|name| !name.is_empty());
        if self.resource.is_empty() { "" } else { named().unwrap_or(self.resource) }
    }
}

/// Returns true if GraphQL refuses because of a rate limit, with a status of success.
pub(super) fn is_limited_query(body: &Value) -> bool {
    let says = |text: &Value| text.as_str().is_some_and(tells_rate_limit);
    // The type is `RATE_LIMITED`, or `RATE_LIMIT` in newer responses.
    let is_limit = |error: &Value| {
        error["type"].as_str().is_some_and(|kind| kind.starts_with("RATE_LIMIT")) || says(&error["message"])
    };
    says(&body["message"]) || body["errors"].as_array().is_some_and(|errors| errors.iter().any(is_limit))
}

impl Quota {
    /// Returns the time that a request must wait, if it must.
    pub(super) fn pause(&self, cost: Cost, resource: &str, now: Timestamp) -> Option<Duration> {
        let until = |time: Timestamp| Duration::try_from(time.duration_since(now)).ok();
        if let Some(pause) = self.paused_until.and_then(until).filter(|pause| !pause.is_zero()) {
            return Some(pause);
        }
        let resource = self.resources.get(resource)?;
        let is_low = resource.remaining.saturating_mul(10) < resource.limit;
        let is_empty = resource.remaining == 0;
        let may_go_on = matches!(cost, Cost::Create | Cost::Essential | Cost::EssentialRead) && !is_empty;
        until(resource.reset).filter(|pause| is_low && !may_go_on && !pause.is_zero())
    }

    /// Notes what a response says; returns the pause if it refuses because of a limit.
    pub(super) fn note(&mut self, response: LimitedResponse<'_>, now: Timestamp) -> Option<Duration> {
        let reset = response.number("reset").and_then(|reset| match reset {
            EPOCH.. => Timestamp::from_second(reset).ok(),
            _ => now.checked_add(Duration::from_secs(reset.try_into().ok()?)).ok(),
        });
        // A clock that is wrong, or a server that says nonsense, must not pause for longer.
        let latest = now + MAX_PAUSE;
        let reset = reset.map(|reset| reset.min(latest));
        if let (Some(resource), Some(reset)) = (response.resource(), reset) {
            let name = response.name();
            if self.resources.len() < MAX_RESOURCES || self.resources.contains_key(name) {
                self.resources.insert(name.to_owned(), Resource { reset, ..resource });
            }
        }
        let left = self.paused_until.and_then(|until| Duration::try_from(until.duration_since(now)).ok());
        let left = left.filter(|left| !left.is_zero());
        let given = response.header("retry-after").and_then(|value| retry_after(value, now));
        if !response.is_limited() {
            if response.status < 400 && left.is_none() {
                self.untimed = 0;
            }
            // Azure DevOps answers, and asks for a pause.
            if let Some(pause) = given.filter(|pause| !pause.is_zero()) {
                self.pause_for(pause, now);
            }
            return None;
        }
        let reset = reset.filter(|_| response.number("remaining") == Some(0));
        let reset = reset.and_then(|reset| Duration::try_from(reset.duration_since(now)).ok());
        // Calls that were in flight are refused for the same reason as the first one.
        let pause = given.or(reset).or(left).unwrap_or_else(|| {
            let pause = FIRST_PAUSE.saturating_mul(1 << self.untimed.min(10));
            self.untimed += 1;
            pause
        });
        Some(self.pause_for(pause, now))
    }

    /// Pauses all requests, and returns the pause.
    fn pause_for(&mut self, pause: Duration, now: Timestamp) -> Duration {
        let pause = pause.clamp(Duration::from_secs(1), MAX_PAUSE);
        let until = now + pause;
        self.paused_until = Some(self.paused_until.map_or(until, |other| other.max(until)));
        pause
    }

    /// Returns the lowest number of requests that are left, of all resources.
    pub(super) fn remaining(&self) -> Option<u64> {
        self.resources.values().map(|resource| resource.remaining).min()
    }

    /// Returns true if a new value admits the same requests.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        let is_past = |time: Timestamp| time <= now;
        self.paused_until.is_none_or(is_past)
            && self.resources.values().all(|resource| is_past(resource.reset))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-21T10:00:00Z".parse().unwrap()
    }

    fn headers(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn note(quota: &mut Quota, status: u16, list: &[(&str, &str)], message: &str) -> Option<u64> {
        note_at(quota, now(), (status, list, message))
    }

    fn note_at(
        quota: &mut Quota,
        time: Timestamp,
        (status, list, message): (u16, &[(&str, &str)], &str),
    ) -> Option<u64> {
        let headers = headers(list);
        let response = LimitedResponse { status, headers: &headers, message, resource: "core" };
        quota.note(response, time).map(|pause| pause.as_secs())
    }

    #[test]
    fn each_form_of_a_limit_pauses_all_calls() {
        let at = (now() + Duration::from_secs(90)).as_second().to_string();
        for (status, list, message, pause) in [
            (200, vec![], "", None),
            (403, vec![], "Resource not accessible by integration", None),
            (403, vec![("retry-after", "30")], "You have exceeded a secondary rate limit", Some(30)),
            (403, vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", at.as_str())], "", Some(90)),
            (403, vec![], "You have exceeded a secondary rate limit", Some(60)),
            (429, vec![], "", Some(60)),
            (429, vec![("ratelimit-remaining", "0"), ("ratelimit-reset", "45")], "", Some(45)),
            (429, vec![("retry-after", "Sat, 21 Nov 2026 10:01:10 GMT")], "", Some(70)),
            (429, vec![("retry-after", "99999999999999999999")], "", Some(3600)),
            (429, vec![("retry-after", "0")], "", Some(1)),
            (503, vec![("retry-after", "20")], "", Some(20)),
            (503, vec![], "", None),
            (500, vec![("retry-after", "0")], "", None),
            (404, vec![("x-ratelimit-remaining", "0")], "", None),
        ] {
            let mut quota = Quota::default();
            assert_eq!(note(&mut quota, status, &list, message), pause, "{status} {list:?} {message}");
            for cost in [Cost::Read, Cost::Write, Cost::Create, Cost::Essential, Cost::EssentialRead] {
                assert_eq!(quota.pause(cost, "", now()).map(|pause| pause.as_secs()), pause);
            }
        }
    }

    #[test]
    fn a_limit_of_graphql_is_told_by_its_errors() {
        for (body, is_limited) in [
            (json!({"data": {"repository": null}}), false),
            (json!({"errors": [{"type": "FORBIDDEN", "message": "Resource not accessible"}]}), false),
            (json!({"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}), true),
            (json!({"errors": [{"type": "RATE_LIMIT", "code": "graphql_rate_limit"}]}), true),
            (
                json!({"errors": [{"type": "FORBIDDEN"}, {"message": "You have exceeded a secondary rate limit."}]}),
                true,
            ),
            (json!({"message": "You have exceeded a Secondary Rate Limit"}), true),
            (json!({"errors": [{"message": "API rate limit exceeded for user ID 1."}]}), true),
            (json!(null), false),
        ] {
            assert_eq!(is_limited_query(&body), is_limited, "{body}");
        }
    }

    /// Azure DevOps delays answers and sends `Retry-After` with status 200, which was ignored.
    #[test]
    fn a_pause_is_obeyed_with_any_status() {
        for status in [200, 201, 304, 404, 409, 500] {
            let mut quota = Quota::default();
            assert_eq!(note(&mut quota, status, &[("retry-after", "30")], ""), None, "{status}");
            let pause = quota.pause(Cost::Essential, "", now());
            assert_eq!(pause, Some(Duration::from_secs(30)), "{status}");
        }
    }

    #[test]
    fn a_limit_without_a_time_pauses_twice_as_long_each_time() {
        let (mut quota, mut time, mut pauses) = (Quota::default(), now(), Vec::new());
        for _ in 0..7 {
            let pause = note_at(&mut quota, time, (429, &[], "")).unwrap();
            pauses.push(pause);
            time += Duration::from_secs(pause);
        }
        assert_eq!(pauses, [60, 120, 240, 480, 960, 1920, 3600]);
        assert_eq!(note_at(&mut quota, time, (201, &[], "")), None);
        assert_eq!(note_at(&mut quota, time, (429, &[], "")), Some(60));
    }

    /// Four calls in flight made one limit last for eight minutes.
    #[test]
    fn calls_that_were_in_flight_double_no_pause() {
        let mut quota = Quota::default();
        let later = |seconds| now() + Duration::from_secs(seconds);
        assert_eq!(note_at(&mut quota, now(), (429, &[], "")), Some(60));
        assert_eq!(note_at(&mut quota, later(1), (429, &[], "")), Some(59));
        // One that was answered before the limit says nothing about its end.
        assert_eq!(note_at(&mut quota, later(2), (200, &[], "")), None);
        assert_eq!(note_at(&mut quota, later(3), (403, &[], "secondary rate limit")), Some(57));
        assert_eq!(note_at(&mut quota, later(60), (429, &[], "")), Some(120));
    }

    /// Azure DevOps names parts of the server in the header of GitHub's limits.
    #[test]
    fn a_server_with_one_limit_has_one_whatever_it_calls_it() {
        let list = [
            ("x-ratelimit-limit", "200"),
            ("x-ratelimit-remaining", "1"),
            ("x-ratelimit-reset", "600"),
            ("x-ratelimit-resource", "core;build"),
        ];
        for (named, asked, is_paused) in [(true, "", true), (true, "core", false), (false, "core", true)] {
            let mut quota = Quota::default();
            let headers = headers(if named { &list } else { &list[..3] });
            let response = LimitedResponse { status: 200, headers: &headers, message: "", resource: asked };
            assert_eq!(quota.note(response, now()), None);
            assert_eq!(quota.pause(Cost::Read, asked, now()).is_some(), is_paused, "{named} {asked}");
        }
    }

    #[test]
    fn below_a_tenth_only_opening_closing_and_signing_continue() {
        let state = |remaining: &str| {
            let mut quota = Quota::default();
            let list = [
                ("x-ratelimit-limit", "5000"),
                ("x-ratelimit-remaining", remaining),
                ("x-ratelimit-reset", "600"),
                ("x-ratelimit-resource", "core"),
            ];
            note(&mut quota, 200, &list, "");
            quota
        };
        for (remaining, allowed) in
            [("500", [true; 5]), ("499", [false, false, true, true, true]), ("0", [false; 5])]
        {
            let costs = [Cost::Read, Cost::Write, Cost::Create, Cost::Essential, Cost::EssentialRead];
            let found = costs.map(|cost| state(remaining).pause(cost, "core", now()).is_none());
            assert_eq!(found, allowed, "{remaining}");
            assert_eq!(state(remaining).pause(Cost::Read, "graphql", now()), None);
        }
        let later = now() + Duration::from_secs(601);
        assert_eq!(state("0").pause(Cost::Read, "core", later), None);
        assert!(state("0").is_over(later) && !state("0").is_over(now()));
        assert_eq!(state("7").remaining(), Some(7));
    }
}
