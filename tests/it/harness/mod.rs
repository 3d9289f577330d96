//! Tests of the test servers: the properties that the other tests rely on.

mod api_server;
mod git_hosts;
mod server_builds;
mod workloads;
