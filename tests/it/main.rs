//! The integration tests of the program and the library.
//! The real program runs on real files and servers, and the library on generated input.

#![cfg(test)]

mod automation_status;
mod cloud_logins;
mod commit_messages_page;
mod controller;
mod demo;
mod deployment;
mod documented_paths;
mod explain;
mod forges;
mod git_access;
mod github;
mod glossary;
mod harness;
mod help;
mod history;
mod language;
mod lint;
mod manifest_secrets;
mod mirrors;
mod node_pools;
mod nodes;
mod page;
mod properties;
mod pull_requests;
mod readme;
mod registry;
mod render;
mod rest;
mod rollout;
mod rollout_controller;
mod rollout_end_to_end;
mod rooms;
mod run;
mod scan;
mod security_page;
mod shared_maps;
mod signing;
mod status;
mod support;
mod tenants;
mod update;
