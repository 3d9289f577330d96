//! The servers of the tests, tested: the properties that the other tests rely on.

mod api_server;
mod git_hosts;
mod server_builds;
