//! Support of the tests: the program, trees of files, manifests, git repositories and servers.

pub(crate) mod api_server;
pub(crate) mod bare_repository;
pub(crate) mod built_program;
pub(crate) mod cases;
pub(crate) mod certificates;
pub(crate) mod clock;
pub(crate) mod content;
pub(crate) mod eventually;
pub(crate) mod fleet;
pub(crate) mod git_host;
pub(crate) mod git_program;
pub(crate) mod http_front;
pub(crate) mod manifests;
pub(crate) mod patches;
pub(crate) mod process_reaper;
pub(crate) mod program;
pub(crate) mod proxy_host;
pub(crate) mod recording;
pub(crate) mod registry;
pub(crate) mod remote_fleet;
pub(crate) mod sources;
pub(crate) mod ssh_host;
pub(crate) mod ssh_key;
pub(crate) mod trees;
pub(crate) mod unwritable;
pub(crate) mod workloads;
