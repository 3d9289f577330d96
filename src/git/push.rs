//! One push: the request, and the reply of the remote.

use super::git_output::GitOutput;
use super::name::{CommitId, RefName};

/// Messages of git about a reference that another push holds or has moved.
const CONTESTED: [&str; 4] =
    ["failed to update ref", "cannot lock ref", "incorrect old value provided", "reference already exists"];

/// A push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PushRequest {
    /// The references and their new values.
    pub(super) updates: Vec<PushUpdate>,
    /// True if the commits build on a reference that the remote has listed.
    pub(super) is_on_listed: bool,
    /// Options for the server's hooks.
    pub(super) options: Vec<(String, String)>,
}

/// A conditional reference update (compare-and-swap).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PushUpdate {
    /// The reference.
    pub(super) reference: RefName,
    /// The commit; none if the reference is deleted.
    pub(super) new: Option<CommitId>,
    /// The expected old value; none if it must not exist.
    pub(super) old: Option<CommitId>,
}

impl PushRequest {
    /// Returns the new commit of a reference, if it is among the updates.
    pub(super) fn commit_for(&self, reference: &RefName) -> Option<CommitId> {
        self.updates.iter().find(|update| update.reference == *reference).and_then(|update| update.new)
    }

    /// Returns the leases, as `--force-with-lease` takes them.
    pub(super) fn leases(&self) -> impl Iterator<Item = String> {
        self.updates.iter().map(|PushUpdate { reference, old, .. }| match old {
            Some(old) => format!("{reference}:{old}"),
            None => format!("{reference}:"),
        })
    }

    /// Returns the refspecs: a commit and a full name each.
    pub(super) fn refspecs(&self) -> impl Iterator<Item = String> {
        self.updates.iter().map(|PushUpdate { reference, new, .. }| match new {
            Some(new) => format!("{new}:{reference}"),
            None => format!(":{reference}"),
        })
    }
}

/// The reply of the remote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PushReply {
    /// One line for each reference in the reply.
    pub(super) lines: Vec<PushLine>,
    /// The output of the server's hooks.
    pub(super) hooks: String,
}

/// The result for one reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PushLine {
    /// The reference's name.
    pub(super) reference: String,
    /// True if it now points at the new commit.
    pub(super) is_done: bool,
    /// The message, such as `[remote rejected] (pre-receive hook declined)`.
    pub(super) message: GitOutput,
}

impl PushReply {
    /// Reads the output of `git push --porcelain`; `redact` redacts secrets in a server's messages.
    pub(super) fn parse(output: &[u8], stderr: &GitOutput, redact: impl Fn(&str) -> String) -> Self {
        let output = String::from_utf8_lossy(output);
        let lines = output.lines().filter_map(|line| {
            let mut parts = line.splitn(3, '\t');
            let (flag, names, message) = (parts.next()?, parts.next()?, parts.next()?);
            let (_, reference) = names.split_once(':')?;
            let message = GitOutput::new(message.trim(), &redact);
            Some(PushLine { reference: reference.to_owned(), is_done: flag != "!", message })
        });
        let hooks = stderr.lines().filter(|(full, _)| full.starts_with("remote:"));
        let hooks = hooks
            .map(|(_, redacted)| redacted.split_once(':').map_or(redacted, |(_, message)| message).trim());
        let hooks: Vec<&str> = hooks.filter(|line| !line.is_empty()).collect();
        Self { lines: lines.collect(), hooks: hooks.join("; ") }
    }

    /// Returns true if, by the reply, a reference now points at the new commit.
    pub(super) fn is_done(&self, reference: &RefName) -> bool {
        // Gerrit refuses a change that it already has. This concerns references for review only: a refused branch or
        // tag does not point at the commit, regardless of the server's message.
        let is_for_review =
            !["refs/heads/", "refs/tags/"].iter().any(|place| reference.as_str().starts_with(place));
        let is_known = |line: &PushLine| is_for_review && line.message.full().contains("no new changes");
        let has = |line: &PushLine| line.is_done || is_known(line);
        self.lines.iter().any(|line| line.reference == reference.as_str() && has(line))
    }

    /// Returns true if all updates of the request are done.
    pub(super) fn is_all_done(&self, request: &PushRequest) -> bool {
        request.updates.iter().all(|update| self.is_done(&update.reference))
    }

    /// Returns true if a reference differed from its expected value, so that nothing was sent.
    pub(super) fn is_stale(&self, reference: &RefName) -> bool {
        let is_stale = |line: &PushLine| !line.is_done && line.message.full().contains("(stale info)");
        self.lines.iter().any(|line| line.reference == reference.as_str() && is_stale(line))
    }

    /// Returns true if this push certainly did not move a reference to the new commit.
    pub(super) fn is_refused(&self, reference: &RefName) -> bool {
        // After a remote failure the result is unknown.
        let is_certain = |line: &PushLine| !line.is_done && !line.message.full().contains("remote failure");
        self.lines.iter().any(|line| line.reference == reference.as_str() && is_certain(line))
    }

    /// Returns true if another push held a reference or moved it.
    ///
    /// It may be this very push: if a connection breaks before the answer, curl sends the request again without git's
    /// knowledge.
    pub(super) fn is_contested(&self, reference: &RefName) -> bool {
        let is_contested =
            |line: &PushLine| CONTESTED.iter().any(|known| line.message.full().contains(known));
        self.lines.iter().any(|line| line.reference == reference.as_str() && is_contested(line))
    }

    /// Returns the remote's message about a reference that it refused.
    pub(super) fn refusal(&self, reference: &RefName) -> String {
        let line = self.lines.iter().find(|line| line.reference == reference.as_str());
        let message = line.map_or_else(|| "no answer".to_owned(), |line| line.message.to_string());
        if self.hooks.is_empty() { message } else { format!("{message}: {}", self.hooks) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_each_reference_is_read() {
        let output = b"To http://h/r.git\n \t1111:refs/heads/main\t1111..2222\n*\t1111:refs/heads/new\t[new branch]\n\
            !\t1111:refs/heads/x\t[remote rejected] (pre-receive hook declined)\n\
            !\t1111:refs/for/main\t[remote rejected] (no new changes)\n=\t1111:refs/heads/same\t[up to date]\n\
            !\t1111:refs/heads/stale\t[rejected] (stale info)\n\
            !\t1111:refs/heads/known\t[remote rejected] (no new changes)\n\
            !\t1111:refs/tags/known\t[remote rejected] (no new changes)\n\
            !\t1111:refs/heads/lost\t[remote failure] (remote failed to report status)\n\
            !\t1111:refs/heads/locked\t[remote rejected] (failed to update ref)\nDone\n";
        let reply = PushReply::parse(
            output,
            &GitOutput::new(
                "remote: Not on Fridays.        \nremote: \nerror: failed to push some refs\n",
                str::to_owned,
            ),
            str::to_owned,
        );
        let name = |name: &str| name.parse::<RefName>().unwrap();
        for (reference, is_done) in [
            ("refs/heads/main", true),
            ("refs/heads/new", true),
            ("refs/heads/x", false),
            ("refs/for/main", true),
            ("refs/heads/same", true),
            ("refs/heads/unheard", false),
            ("refs/heads/stale", false),
            ("refs/heads/lost", false),
            ("refs/heads/known", false),
            ("refs/tags/known", false),
        ] {
            assert_eq!(reply.is_done(&name(reference)), is_done, "{reference}");
        }
        for (reference, is_refused, is_stale) in [
            ("refs/heads/main", false, false),
            ("refs/heads/x", true, false),
            ("refs/heads/known", true, false),
            ("refs/heads/stale", true, true),
            ("refs/heads/lost", false, false),
            ("refs/heads/locked", true, false),
            ("refs/heads/unheard", false, false),
        ] {
            let found = (reply.is_refused(&name(reference)), reply.is_stale(&name(reference)));
            assert_eq!(found, (is_refused, is_stale), "{reference}");
        }
        let contested = |text: &str| reply.is_contested(&name(text));
        assert!(
            contested("refs/heads/locked") && !contested("refs/heads/x") && !contested("refs/heads/lost")
        );
        let message = reply.refusal(&name("refs/heads/x"));
        assert_eq!(message, "[remote rejected] (pre-receive hook declined): Not on Fridays.");
    }

    #[test]
    fn a_redacted_reply_of_a_server_keeps_its_meaning() {
        let redact = |line: &str| line.replace("info", "••••").replace("remote", "••••");
        let output = b"!\t1111:refs/heads/a\t[rejected] (stale info)\n";
        let reply = PushReply::parse(output, &GitOutput::new("remote: no info\n", redact), redact);
        let name: RefName = "refs/heads/a".parse().unwrap();
        assert!(reply.is_stale(&name));
        assert_eq!(reply.refusal(&name), "[rejected] (stale ••••): no ••••");
    }

    #[test]
    fn every_push_is_conditional_on_the_observed_commit() {
        let commit: CommitId = "00112233445566778899aabbccddeeff00112233".parse().unwrap();
        let update =
            |name: &str, old| PushUpdate { reference: name.parse().unwrap(), new: Some(commit), old };
        let request = PushRequest {
            updates: vec![update("refs/heads/a", Some(commit)), update("refs/heads/b", None)],
            ..PushRequest::default()
        };
        let leases: Vec<String> = request.leases().collect();
        assert_eq!(leases, [format!("refs/heads/a:{commit}"), "refs/heads/b:".to_owned()]);
        assert_eq!(request.refspecs().last(), Some(format!("{commit}:refs/heads/b")));
    }
}
