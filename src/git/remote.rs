//! The remote of a mirror: listing, fetch and push.

use std::sync::Arc;
use std::time::Duration;

use super::access::{Access, AccessError, AccessPlan, LoginOwner};
use super::command::{Call, GitError, Output};
use super::failure_kind::{FailureKind, classify, detail};
use super::listing::Listing;
use super::mirror::Mirror;
use super::name::{CommitId, RefName};
use super::process_memory;
use super::push::{PushReply, PushRequest};
use super::redirect::Redirect;
use super::remote_error::{RemoteError, RemoteOperation};
use super::server_deadline::ServerDeadline;
use super::slots::RouteKey;
use super::url::{RemoteUrl, Transport};
use crate::tenancy::Permit;

/// The memory of a listing.
#[derive(Clone, Copy)]
pub(super) struct ListingMemory {
    /// The bytes that are reserved for it.
    pub(super) reserved: u64,
    /// The memory limit of each process, in MiB.
    pub(super) limit: u64,
}

impl ListingMemory {
    const fn of(mib: u64, limit: u64) -> Self {
        Self { reserved: mib * 1024 * 1024, limit }
    }
}

/// The memory of the attempts at a listing.
///
/// The first two take no more than is reserved, because they may wait long for slow servers. Some 9 MiB go
/// into TLS and its certificates, and 50,000 references take 20 MiB in the most expensive protocol.
pub(super) const LISTINGS: [ListingMemory; 3] = [
    ListingMemory::of(16, 16),
    ListingMemory::of(32, 32),
    ListingMemory::of(64, process_memory::PROCESS_MIB),
];

/// The memory that is reserved for a fetch, a push or a repack, in bytes.
pub(super) const TRANSFER_MEMORY: u64 = 32 * 1024 * 1024;

/// A remote to be used, without the files of a login.
#[derive(Debug, Clone)]
pub struct RemotePlan {
    /// Its address.
    pub url: RemoteUrl,
    /// The access to it.
    pub access: AccessPlan,
    /// The time that listing and fetching may take together, and that a push may take.
    pub timeout: Duration,
    /// The route to it, by which transactions are limited.
    pub route: RouteKey,
    /// The size that the mirror may have, in bytes.
    pub size_limit: u64,
    /// The permit of a login that takes much memory.
    /// It is held until the last plan with it is dropped.
    pub large: Option<Arc<Permit>>,
}

impl RemotePlan {
    /// Writes the files of the login.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub(super) fn open(self) -> Result<Remote, AccessError> {
        let Self { url, access, timeout, route: _, size_limit, large: _ } = self;
        Ok(Remote { access: access.open()?, url, timeout, size_limit, redirect: None })
    }
}

/// The address of a remote, its access and its limits.
#[derive(Debug)]
pub struct Remote {
    /// Its address.
    pub url: RemoteUrl,
    /// The access to it.
    pub access: Access,
    /// The time that listing and fetching may take together, and that a push may take.
    pub timeout: Duration,
    /// The size that the mirror may have, in bytes.
    pub size_limit: u64,
    /// The address to which the server redirects.
    /// It is `None` at first, because only the server knows it.
    pub redirect: Option<Redirect>,
}

impl Remote {
    /// Lists `queries`, or all references if it is empty.
    ///
    /// # Errors
    ///
    /// If the remote cannot be reached or does not answer until `deadline`.
    pub(super) fn list(
        &self,
        mirror: &Mirror,
        queries: &[ListingQuery],
        deadline: &ServerDeadline,
    ) -> Result<Listing, RemoteError> {
        let [first, larger @ ..] = LISTINGS;
        let mut output = self.list_within(mirror, queries, deadline, first);
        for memory in larger {
            if !output.as_ref().is_err_and(needs_more_memory) {
                break;
            }
            output = self.list_within(mirror, queries, deadline, memory);
        }
        let url = || self.address().to_string();
        let output = output.map_err(|cause| match cause {
            GitError::TooMuchOutput { .. } => RemoteError::Overlong { url: url() },
            cause => self.explain(RemoteOperation::List, cause),
        })?;
        Listing::parse(&output).map_err(|cause| RemoteError::Listing { url: url(), cause })
    }

    fn list_within(
        &self,
        mirror: &Mirror,
        queries: &[ListingQuery],
        deadline: &ServerDeadline,
        memory: ListingMemory,
    ) -> Result<Vec<u8>, GitError> {
        let mut call = self.call(mirror, "ls-remote", deadline).argument("--quiet");
        (call.memory, call.limit) = (Some(memory.reserved), memory.limit);
        // A server of protocol 2 can be asked for names with a prefix. Git does so for these two options only, so all
        // branches come, or all tags, and everything if both are wanted; git itself selects the named ones.
        let is_all = |test: fn(&ListingQuery) -> bool| !queries.is_empty() && queries.iter().all(test);
        if is_all(|query| query.name().starts_with("refs/heads/")) {
            call = call.argument("--heads");
        } else if is_all(|query| query.name().starts_with("refs/tags/")) {
            call = call.argument("--tags");
        }
        let call = call.argument("--").argument(self.address().to_argument());
        call.arguments(queries.iter().flat_map(ListingQuery::patterns)).run()
    }

    /// Fetches commits, or tag objects, without their history.
    ///
    /// # Errors
    ///
    /// If the remote does not have one any more, or the mirror would exceed its limit.
    pub(super) fn fetch(
        &self,
        mirror: &Mirror,
        objects: &[CommitId],
        deadline: &ServerDeadline,
    ) -> Result<(), RemoteError> {
        let refspecs = objects.iter().map(|object| format!("+{object}:{}", Mirror::kept_name(*object)));
        self.fetch_to(mirror, refspecs.collect(), "--depth=1", deadline)
    }

    /// Fetches the commit of a branch without its history, and lists the branch again.
    /// Any failure gives `None`.
    pub(super) fn fetch_branch(
        &self,
        mirror: &Mirror,
        branch: &RefName,
        deadline: &ServerDeadline,
    ) -> Option<Listing> {
        let refspec = format!("+{branch}:{}", Mirror::FETCHED);
        self.fetch_to(mirror, vec![refspec], "--depth=1", deadline).ok()?;
        Some(Listing::of_branch(branch.clone(), mirror.fetched()?))
    }

    /// Fetches a commit with some of its history.
    ///
    /// # Errors
    ///
    /// If the remote does not have it any more, or the mirror would exceed its limit.
    pub(super) fn deepen(
        &self,
        mirror: &Mirror,
        commit: CommitId,
        depth: u32,
        deadline: &ServerDeadline,
    ) -> Result<(), RemoteError> {
        let refspec = format!("+{commit}:{}", Mirror::kept_name(commit));
        self.fetch_to(mirror, vec![refspec], &format!("--depth={depth}"), deadline)
    }

    /// Fetches a commit with its history beyond a branch of the remote.
    ///
    /// # Errors
    ///
    /// If the whole history is in the branch, the remote cannot leave a branch out, or it fails otherwise. A remote
    /// need not say which.
    pub(super) fn fetch_beyond(
        &self,
        mirror: &Mirror,
        commit: CommitId,
        branch: &RefName,
        deadline: &ServerDeadline,
    ) -> Result<(), RemoteError> {
        let refspec = format!("+{commit}:{}", Mirror::kept_name(commit));
        self.fetch_to(mirror, vec![refspec], &format!("--shallow-exclude={branch}"), deadline)
    }

    /// Returns true if the mirror may have its current size.
    pub(super) fn has_room(&self, mirror: &Mirror) -> bool {
        let size = mirror.size();
        size <= self.size_limit && mirror.has_room_for(size)
    }

    /// Returns the error of a mirror without room.
    pub(super) fn too_large(&self, mirror: &Mirror) -> RemoteError {
        let url = self.address().to_string();
        match mirror.size() > self.size_limit {
            true => RemoteError::TooLarge { url, limit: self.size_limit },
            false => RemoteError::NoSpace { url, limit: mirror.total_limit() },
        }
    }

    fn fetch_to(
        &self,
        mirror: &Mirror,
        refspecs: Vec<String>,
        history: &str,
        deadline: &ServerDeadline,
    ) -> Result<(), RemoteError> {
        let is_within_limit = || self.has_room(mirror);
        let mut watch = is_within_limit;
        let call = self.call(mirror, "fetch", deadline).argument(history);
        // Small packs are kept as packs too: a mirror has no loose objects.
        let call = call.setting("fetch.unpackLimit", "1");
        let mut call = call
            .arguments(["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--"])
            .argument(self.address().to_argument())
            .arguments(refspecs);
        call.memory = Some(TRANSFER_MEMORY);
        call.watch = Some(&mut watch);
        let before = mirror.size();
        let result = call.run();
        mirror.context.metrics.fetched(mirror.size().saturating_sub(before));
        match result {
            Err(GitError::Stopped { .. }) => Err(self.too_large(mirror)),
            Err(cause) => Err(self.explain(RemoteOperation::Fetch, cause)),
            Ok(_) if !is_within_limit() => Err(self.too_large(mirror)),
            Ok(_) => Ok(()),
        }
    }

    /// Pushes, and returns the reply.
    ///
    /// # Errors
    ///
    /// If there was no reply; the push may have succeeded all the same.
    pub(super) fn push(
        &self,
        mirror: &Mirror,
        request: &PushRequest,
        deadline: &ServerDeadline,
        may_begin: &dyn Fn() -> bool,
    ) -> Result<PushReply, RemoteError> {
        let explain = |cause| self.explain(RemoteOperation::Push, cause);
        let make = |with_options: bool| {
            // The server lists the targets of its references, and if one of them is the base of our commits, it has all
            // ancestors. Only otherwise is it worth asking what else it has.
            let is_known = request.is_on_listed || request.updates.iter().any(|update| update.old.is_some());
            let mut call = self.call(mirror, "push", deadline);
            call.memory = Some(TRANSFER_MEMORY);
            call.may_begin = Some(may_begin);
            call = call.setting("push.negotiate", if is_known { "false" } else { "true" });
            call = call.arguments(["--porcelain", "--no-verify", "--no-follow-tags"]);
            let options = request.options.iter().filter(|_| with_options);
            call = call.arguments(options.map(|(key, value)| format!("--push-option={key}={value}")));
            call = call.arguments(request.leases().map(|lease| format!("--force-with-lease={lease}")));
            call.argument("--")
                .argument(self.address().to_argument())
                .arguments(request.refspecs())
                .run_unchecked()
        };
        let mut output = make(true).map_err(explain)?;
        // Flux drops push options that a server does not support.
        if !output.status.success() && classify(output.stderr.full()) == Some(FailureKind::NoPushOptions) {
            output = make(false).map_err(explain)?;
        }
        let Output { status, stdout, stderr } = output;
        let reply = PushReply::parse(&stdout, &stderr, |text| self.access.redact(text));
        if !status.success() && reply.lines.is_empty() {
            return Err(explain(GitError::Refused { verb: "push", status, stderr }));
        }
        Ok(reply)
    }

    fn call<'a>(&'a self, mirror: &'a Mirror, verb: &'static str, deadline: &'a ServerDeadline) -> Call<'a> {
        self.call_at(self.address(), mirror, verb, deadline)
    }

    /// Creates a call that may reach `url`.
    pub(super) fn call_at<'a>(
        &'a self,
        url: &RemoteUrl,
        mirror: &'a Mirror,
        verb: &'static str,
        deadline: &'a ServerDeadline,
    ) -> Call<'a> {
        let own = [url.transport()];
        let transports = match (self.access.owner(), url.transport()) {
            (_, Transport::Local) | (LoginOwner::Objects, _) => own.as_slice(),
            // The user's `url.….insteadOf` may turn one into another.
            (LoginOwner::User, _) => &[Transport::Http, Transport::Https, Transport::Ssh],
        };
        // If we are killed, nothing is left to end the process at its deadline: then git itself ends when the server is
        // silent.
        let seconds = deadline.remaining().as_secs() + 1;
        let mut call = mirror.git().call(verb);
        for transport in transports {
            call = call.setting(&format!("protocol.{}.allow", transport.scheme()), "always");
        }
        if matches!(url.transport(), Transport::Http | Transport::Https) {
            // A user's own setting for a part of this URL would override the one for all.
            call = call.setting_for(url, "http", "followRedirects", "false");
        }
        (call.access, call.slot, call.deadline) = (Some(&self.access), Some(&mirror.slot), Some(deadline));
        call.cancellations = &mirror.cancellations;
        call.setting("http.lowSpeedLimit", "1").setting("http.lowSpeedTime", &seconds.to_string())
    }

    fn explain(&self, operation: RemoteOperation, cause: GitError) -> RemoteError {
        let url = self.address().to_string();
        match cause {
            GitError::Refused { verb, status, stderr } => match classify(stderr.full()) {
                Some(kind) => {
                    let detail = detail(&stderr);
                    RemoteError::Diagnosed { operation, url, kind, owner: self.access.owner(), detail }
                }
                None => {
                    let cause = GitError::Refused { verb, status, stderr };
                    RemoteError::Failed { operation, url, cause }
                }
            },
            cause => RemoteError::Failed { operation, url, cause },
        }
    }
}

/// Returns true if git failed for want of memory. Libraries for TLS crash without it.
fn needs_more_memory(error: &GitError) -> bool {
    let GitError::Refused { stderr, .. } = error else { return false };
    let stderr = stderr.full();
    // TLS libraries without memory crash, or report that they cannot read certificates; curl reports that the thread of
    // a name lookup cannot start.
    matches!(classify(stderr), Some(FailureKind::OutOfMemory | FailureKind::Authority))
        || ["died of signal", "thread failed to start"].iter().any(|known| stderr.contains(known))
}

/// A reference, or all tags, to be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListingQuery {
    /// One reference.
    Reference(RefName),
    /// All tags.
    Tags,
}

impl ListingQuery {
    fn name(&self) -> &str {
        match self {
            Self::Reference(name) => name.as_str(),
            Self::Tags => "refs/tags/*",
        }
    }

    /// Returns the patterns for git: the name, and the peeled form of a tag.
    fn patterns(&self) -> Vec<String> {
        let name = self.name();
        let is_branch = name.starts_with("refs/heads/");
        let target = (!is_branch).then(|| format!("{name}^{{}}"));
        std::iter::once(name.to_owned()).chain(target).collect()
    }
}
