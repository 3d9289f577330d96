//! The web page of `--status-addr`, in a real browser.
//!
//! Screenshots are kept in `target/screenshots`.

mod accessibility;
mod browser;
mod fleet;
mod live;
mod node_pool;
mod responses;
mod without_scripts;
