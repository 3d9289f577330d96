//! The integration tests: the real program on real files, and the library under generated input.

#![cfg(test)]

mod access;
mod api_server;
mod automation_status;
mod cli;
mod clouds;
mod controller;
mod deployment;
mod explain;
mod git_hosts;
mod golden;
mod help;
mod language;
mod links;
mod lint;
mod manual;
mod mirrors;
mod paths;
mod properties;
mod registry;
mod rooms;
mod run;
mod run_scans;
mod run_ways;
mod scan;
mod secrets;
mod security_page;
mod server_builds;
mod shared_maps;
mod signing;
mod support;
mod tenants;
