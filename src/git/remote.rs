//! The remote side of a mirror: what it lists, what is fetched from it, what is pushed to it.

use std::time::{Duration, Instant};

use super::access::Access;
use super::command::{Call, GitError, Printed};
use super::diagnosis::{Trouble, diagnose, telling};
use super::listing::{Listing, ListingError};
use super::mirror::Mirror;
use super::name::{CommitId, RefName};
use super::push::{PushReply, PushRequest};
use super::url::RemoteUrl;

/// Where a remote is, how it is reached, and what it may cost.
#[derive(Debug)]
pub struct Remote {
    /// Its address.
    pub url: RemoteUrl,
    /// How to log in there.
    pub access: Access,
    /// The time that listing and fetching may take together, and that a push may take.
    pub timeout: Duration,
    /// The size that the mirror may have, in bytes.
    pub size_limit: u64,
}

/// Why a remote did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Something between here and there that is known.
    #[error("unable to {doing} '{url}': {}{}", trouble.advice(), behind_colon(words))]
    Troubled {
        /// What was being done.
        doing: &'static str,
        /// The remote.
        url: String,
        /// What is the matter.
        trouble: Trouble,
        /// Git's words.
        words: String,
    },
    /// Something else.
    #[error("unable to {doing} '{url}'")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// The remote.
        url: String,
        /// Why.
        #[source]
        cause: GitError,
    },
    /// The remote sends us to another server, or another scheme.
    #[error(
        "unable to {doing} '{url}': the server redirects to '{target}'; credentials are never sent to another server, so \
         if that is right, put it into spec.url of the GitRepository"
    )]
    Redirected {
        /// What was being done.
        doing: &'static str,
        /// The remote.
        url: String,
        /// Where it sends us.
        target: String,
    },
    /// The remote's answer is no listing of ours.
    #[error("unable to list '{url}'")]
    Listing {
        /// The remote.
        url: String,
        /// Why.
        #[source]
        cause: ListingError,
    },
    /// What is fetched does not fit.
    #[error(
        "unable to fetch '{url}': the mirror would be larger than {limit} bytes; raise --mirror-max-size if the \
         repository really is that large"
    )]
    TooLarge {
        /// The remote.
        url: String,
        /// The limit in bytes.
        limit: u64,
    },
}

/// What is to stand behind a sentence, if there is anything.
fn behind_colon(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

impl RemoteError {
    /// What is the matter, where it is known.
    pub fn trouble(&self) -> Option<Trouble> {
        match self {
            Self::Troubled { trouble, .. } => Some(*trouble),
            _ => None,
        }
    }
}

impl Remote {
    /// Lists `wanted`, or all references where nothing is named.
    ///
    /// # Errors
    ///
    /// When the remote cannot be reached or does not answer until `deadline`.
    pub(super) fn list(
        &self,
        mirror: &Mirror,
        wanted: &[Wanted],
        deadline: Instant,
    ) -> Result<Listing, RemoteError> {
        let mut call = self.call(mirror, "ls-remote", deadline).argument("--quiet");
        // With these two, a server of protocol 2 sends only what is asked for.
        let is_all = |test: fn(&Wanted) -> bool| !wanted.is_empty() && wanted.iter().all(test);
        if is_all(|wanted| wanted.name().starts_with("refs/heads/")) {
            call = call.argument("--heads");
        } else if is_all(|wanted| wanted.name().starts_with("refs/tags/")) {
            call = call.argument("--tags");
        }
        let call = call.argument("--").argument(self.url.to_argument());
        let call = call.arguments(wanted.iter().flat_map(Wanted::patterns));
        let output = call.run().map_err(|cause| self.explain("list", cause))?;
        let listing = Listing::parse(&output);
        listing.map_err(|cause| RemoteError::Listing { url: self.url.to_string(), cause })
    }

    /// Fetches commits, or tag objects, without their history.
    ///
    /// # Errors
    ///
    /// When the remote does not have one any more, or the mirror would grow beyond its limit.
    pub(super) fn fetch(
        &self,
        mirror: &Mirror,
        objects: &[CommitId],
        deadline: Instant,
    ) -> Result<(), RemoteError> {
        self.fetch_to(mirror, objects, 1, deadline)
    }

    /// Fetches a commit with some of its history.
    ///
    /// # Errors
    ///
    /// When the remote does not have it any more, or the mirror would grow beyond its limit.
    pub(super) fn deepen(
        &self,
        mirror: &Mirror,
        commit: CommitId,
        depth: u32,
        deadline: Instant,
    ) -> Result<(), RemoteError> {
        self.fetch_to(mirror, &[commit], depth, deadline)
    }

    fn fetch_to(
        &self,
        mirror: &Mirror,
        objects: &[CommitId],
        depth: u32,
        deadline: Instant,
    ) -> Result<(), RemoteError> {
        let mut is_within_limit = || mirror.size() <= self.size_limit;
        let call = self.call(mirror, "fetch", deadline).argument(format!("--depth={depth}"));
        // Small packs stay packs too: a mirror has no loose objects.
        let call = call.setting("fetch.unpackLimit", "1");
        let call = call
            .arguments(["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--"])
            .argument(self.url.to_argument())
            .arguments(objects.iter().map(|object| format!("+{object}:{}", Mirror::kept_name(*object))))
            .watch(&mut is_within_limit);
        let too_large = || RemoteError::TooLarge { url: self.url.to_string(), limit: self.size_limit };
        match call.run() {
            Err(GitError::Stopped { .. }) => Err(too_large()),
            Err(cause) => Err(self.explain("fetch", cause)),
            Ok(_) if mirror.size() > self.size_limit => Err(too_large()),
            Ok(_) => Ok(()),
        }
    }

    /// Pushes, and gives what was said to each reference.
    ///
    /// # Errors
    ///
    /// When there was no answer; the push may have been carried out all the same.
    pub(super) fn push(
        &self,
        mirror: &Mirror,
        request: &PushRequest,
        deadline: Instant,
    ) -> Result<PushReply, RemoteError> {
        let explain = |cause| self.explain("push to", cause);
        let make = |with_options: bool| {
            // The server tells what its references point at, and where one of them is what our commits stand on, it
            // has all that is below. Only otherwise is it worth asking what else it has.
            let is_known = request.updates.iter().any(|update| update.old.is_some());
            let mut call = self.call(mirror, "push", deadline);
            call = call.setting("push.negotiate", if is_known { "false" } else { "true" });
            call = call.arguments(["--porcelain", "--no-verify", "--no-follow-tags"]);
            let options = request.options.iter().filter(|_| with_options);
            call = call.arguments(options.map(|(key, value)| format!("--push-option={key}={value}")));
            call = call.arguments(request.leases().map(|lease| format!("--force-with-lease={lease}")));
            call.argument("--").argument(self.url.to_argument()).arguments(request.refspecs()).run_whatever()
        };
        let mut printed = make(true).map_err(explain)?;
        // Flux drops options that a server does not take.
        if !printed.is_success && diagnose(&printed.words) == Some(Trouble::NoPushOptions) {
            printed = make(false).map_err(explain)?;
        }
        let Printed { is_success, output, words } = printed;
        let reply = PushReply::parse(&output, &words);
        if !is_success && reply.lines.is_empty() {
            let words = super::command::one_line(&words);
            return Err(explain(GitError::Refused { verb: "push", words }));
        }
        Ok(reply)
    }

    fn call<'a>(&'a self, mirror: &Mirror, verb: &'static str, deadline: Instant) -> Call<'a> {
        let scheme = format!("protocol.{}.allow", self.url.transport().scheme());
        // Should we be killed, nobody is left to end the process at its deadline: then git gives up by itself on a
        // server that is silent.
        let patience = deadline.saturating_duration_since(Instant::now()).as_secs() + 1;
        mirror
            .git()
            .call(verb)
            .access(&self.access)
            .setting(&scheme, "always")
            .setting("http.lowSpeedLimit", "1")
            .setting("http.lowSpeedTime", &patience.to_string())
            .deadline(deadline)
    }

    fn explain(&self, doing: &'static str, cause: GitError) -> RemoteError {
        let url = self.url.to_string();
        match cause {
            GitError::Refused { verb, words } => match diagnose(&words) {
                Some(trouble) => {
                    let words = telling(&words);
                    RemoteError::Troubled { doing, url, trouble, words }
                }
                None => RemoteError::Failed { doing, url, cause: GitError::Refused { verb, words } },
            },
            cause => RemoteError::Failed { doing, url, cause },
        }
    }

    /// Where the server sends those who ask at the remote's address, if it sends them anywhere.
    ///
    /// Git does not say where a redirect leads that it does not follow, except in a trace of what it receives.
    pub(super) fn find_redirect(
        &self,
        mirror: &Mirror,
        is_of_push: bool,
        deadline: Instant,
    ) -> Option<String> {
        let verb = if is_of_push { "push" } else { "ls-remote" };
        let call = self.call(mirror, verb, deadline);
        let call = call.environment("GIT_TRACE_CURL", "1").environment("GIT_TRACE_CURL_NO_DATA", "1");
        // Neither changes anything; the push gets as far as the question what there is.
        let (option, reference) =
            if is_of_push { ("--dry-run", ":refs/heads/none") } else { ("--quiet", "refs/heads/none") };
        let call = call.arguments([option, "--"]).argument(self.url.to_argument()).argument(reference);
        let printed = call.run_whatever().ok()?;
        printed.words.lines().find_map(|line| {
            let (_, header) = line.split_once("Recv header")?;
            let (_, header) = header.split_once(": ")?;
            let (name, target) = header.split_once(": ")?;
            name.eq_ignore_ascii_case("location").then(|| target.trim().to_owned())
        })
    }
}

/// A reference, or all tags, to be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// One reference.
    Reference(RefName),
    /// All tags.
    Tags,
}

impl Wanted {
    fn name(&self) -> &str {
        match self {
            Self::Reference(name) => name.as_str(),
            Self::Tags => "refs/tags/*",
        }
    }

    /// What git is to look for: the name, and whatever a tag of that name leads to, which is listed beside it.
    fn patterns(&self) -> Vec<String> {
        let name = self.name();
        let is_branch = name.starts_with("refs/heads/");
        let target = (!is_branch).then(|| format!("{name}^{{}}"));
        std::iter::once(name.to_owned()).chain(target).collect()
    }
}
