//! The integration tests: the real program on real files, and the library under generated input.

#![cfg(test)]

mod cli;
mod golden;
mod help;
mod links;
mod paths;
mod properties;
mod rooms;
mod secrets;
mod support;
