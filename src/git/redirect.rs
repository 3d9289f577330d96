//! Redirects of a server to another address of a repository.

use super::failure_kind::FailureKind;
use super::git_output::GitOutput;
use super::mirror::Mirror;
use super::remote::Remote;
use super::remote_error::{RemoteError, RemoteOperation};
use super::server_deadline::ServerDeadline;
use super::url::{RemoteUrl, Transport};

/// Another address of a repository on the same server.
#[derive(Clone, Debug)]
pub struct Redirect {
    /// The address.
    pub(super) url: RemoteUrl,
    /// True if the server has named it in an earlier run only.
    pub(super) is_remembered: bool,
}

impl Remote {
    /// Returns the current address of the repository, as far as it is known.
    pub(super) fn address(&self) -> &RemoteUrl {
        self.redirect.as_ref().map_or(&self.url, |redirect| &redirect.url)
    }

    /// Returns the target of the redirect at `url`, if there is one.
    ///
    /// Git prints the target of a redirect that it does not follow only in a trace of the responses.
    pub(super) fn find_redirect(
        &self,
        mirror: &Mirror,
        operation: RemoteOperation,
        url: &RemoteUrl,
        deadline: &ServerDeadline,
    ) -> Option<String> {
        header(&self.trace(mirror, operation, url, deadline)?, "location")
    }

    /// Returns true if the server answers like a git server, not with a web page.
    pub(super) fn speaks_git(&self, mirror: &Mirror, deadline: &ServerDeadline) -> bool {
        if !matches!(self.url.transport(), Transport::Http | Transport::Https) {
            return true;
        }
        let output = self.trace(mirror, RemoteOperation::List, self.address(), deadline);
        let kind = output.and_then(|output| header(&output, "content-type"));
        kind.is_none_or(|kind| kind.starts_with("application/x-git-"))
    }

    /// Returns the trace of a request to `url`, with response headers.
    fn trace(
        &self,
        mirror: &Mirror,
        operation: RemoteOperation,
        url: &RemoteUrl,
        deadline: &ServerDeadline,
    ) -> Option<GitOutput> {
        // Neither changes anything; the push gets only as far as the listing of references.
        let (verb, option, reference) = match operation {
            RemoteOperation::List | RemoteOperation::Fetch => ("ls-remote", "--quiet", "refs/heads/none"),
            RemoteOperation::Push => ("push", "--dry-run", ":refs/heads/none"),
        };
        let call = self.call_at(url, mirror, verb, deadline);
        let call = call.environment("GIT_TRACE_CURL", "1").environment("GIT_TRACE_CURL_NO_DATA", "1");
        let call = call.arguments([option, "--"]).argument(url.to_argument()).argument(reference);
        Some(call.run_unchecked().ok()?.stderr)
    }

    /// Requests a remembered redirect again.
    ///
    /// Another repository may have got the address meanwhile, and commits would go to the repository that had
    /// it before.
    ///
    /// # Errors
    ///
    /// If the answer differs from the remembered one. The use of the address will show the new one.
    pub(super) fn confirm(&self, mirror: &Mirror) -> Result<(), RemoteError> {
        let Some(Redirect { url, is_remembered: true }) = &self.redirect else { return Ok(()) };
        let location = self.find_redirect(
            mirror,
            RemoteOperation::Push,
            &self.url,
            &ServerDeadline::after(self.timeout),
        );
        let found = location.and_then(|location| self.url.redirected(&location).ok());
        if found.is_some_and(|found| found.to_argument() == url.to_argument()) {
            return Ok(());
        }
        Err(RemoteError::Diagnosed {
            operation: RemoteOperation::Push,
            url: url.to_string(),
            kind: FailureKind::Redirected,
            owner: self.access.owner(),
            detail: String::new(),
        })
    }
}

/// Returns the value of a header in a trace, from the first response with it.
fn header(output: &GitOutput, header_name: &str) -> Option<String> {
    output.full().lines().find_map(|line| {
        let (_, header) = line.split_once("Recv header")?;
        let (_, header) = header.split_once(": ")?;
        let (name, value) = header.split_once(": ")?;
        name.eq_ignore_ascii_case(header_name).then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_read_before_it_is_redacted() {
        let trace = "12:00:00.000001 http.c:725              <= Recv header: HTTP/1.1 301 Moved Permanently\n\
            12:00:00.000002 http.c:725              <= Recv header: Location: http://h/alice/fleet.git/info/refs?service=git-upload-pack\n";
        let output = GitOutput::new(trace, |line| line.replace("alice", "••••").replace("git", "••••"));
        let expected = "http://h/alice/fleet.git/info/refs?service=git-upload-pack";
        assert_eq!(header(&output, "location").as_deref(), Some(expected));
        assert_eq!(header(&GitOutput::new("fatal: Location: x", str::to_owned), "location"), None);
    }
}
