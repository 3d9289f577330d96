//! The expected report of one step of a rollout.

use serde_json::Value;

/// The report that all views must give.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'s> {
    /// The state of the deployment.
    pub(super) state: &'s str,
    /// The states of the components, the worst first.
    pub(super) components: &'s [&'s str],
    /// The reason or the code of the error; empty if there is none.
    pub(super) cause: &'s str,
    /// A part of the message that says more about the cause.
    pub(super) message: &'s str,
    /// The tag that the policy has selected.
    pub(super) tag: &'s str,
    /// The tags that the branch `main` has had, the first one first.
    pub(super) in_git: &'s [&'s str],
    /// The branch to which the program has pushed the selected tag, or empty.
    pub(super) pushed: &'s str,
    /// The first step on the page that is not done, with its progress.
    /// Empty if all are done.
    pub(super) current: &'s str,
}

/// The first image is in git, and Flux has not applied it.
pub(super) const UNAPPLIED: Step<'_> = Step {
    message: "has applied no revision yet",
    tag: "1.0.0",
    in_git: &["1.0.0"],
    pushed: "",
    ..COMMITTED
};

/// The first image is running; it was in git before the program.
pub(super) const INSTALLED: Step<'_> = Step {
    state: "installed",
    components: &["installed"],
    cause: "",
    message: "",
    tag: "1.0.0",
    in_git: &["1.0.0"],
    pushed: "",
    current: "",
};

/// The second image is in git, and Flux has not applied it.
pub(super) const COMMITTED: Step<'_> = Step {
    state: "pending",
    components: &["pending"],
    cause: "NotApplied",
    message: "has applied revision main@sha1:",
    tag: "2.0.0",
    in_git: &["1.0.0", "2.0.0"],
    pushed: "main",
    current: "Applied blocked",
};

impl Step<'_> {
    /// Returns true if the status of an object is the expected one.
    pub(super) fn is_met_by(&self, status: &Value) -> bool {
        let components = status["components"].as_array().map_or(&[][..], Vec::as_slice);
        status["state"] == self.state
            && components.iter().map(|component| &component["state"]).eq(self.components)
            && status["target"]["tag"] == self.tag
            && cause(status).0 == self.cause
            && cause(status).1.contains(self.message)
            && status["commit"]["branch"].as_str().unwrap_or_default() == self.pushed
    }
}

/// Returns the reason or the code of a status, and its message.
/// They are those of the deployment's error, or else of the worst component.
pub(super) fn cause(status: &Value) -> (&str, &str) {
    let worst = &status["components"][0];
    let error = [&status["error"], &worst["error"]].into_iter().find(|error| error.is_object());
    let (cause, message) = match error {
        Some(error) => (&error["code"], &error["message"]),
        None => (&status["reason"], &worst["message"]),
    };
    (cause.as_str().unwrap_or_default(), message.as_str().unwrap_or_default())
}
