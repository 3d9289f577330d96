//! The flags of the server of `--status-addr`.

use super::ControllerArguments;
use crate::cli::Failure;
use crate::web::Hosts;

/// The maximum length of a host name, in bytes.
pub(super) const MAX_HOST: usize = 253;

/// The options of the server of `--status-addr`.
#[derive(Clone, Debug)]
pub(in crate::cli::controller) struct StatusOptions {
    pub(in crate::cli::controller) address: String,
    pub(in crate::cli::controller) hosts: Hosts,
}

impl ControllerArguments {
    /// Returns the options of the server of `--status-addr`.
    pub(super) fn status(&self) -> Result<Option<StatusOptions>, Failure> {
        const HOSTS: &str = "status-host";
        let names = self.value(HOSTS).split(',').map(str::trim).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(str::to_owned).collect();
        let is_host = |name: &String| {
            let name = name.strip_suffix('.').unwrap_or(name);
            name.len() <= MAX_HOST && name.split('.').all(is_host_label)
        };
        if !names.iter().all(is_host) {
            return Err(self.invalid(HOSTS, "write host names without ports, separated by commas"));
        }
        let options = |address| StatusOptions { address, hosts: Hosts::new(names) };
        Ok(self.address("status-addr")?.map(options))
    }
}

/// Returns true for a part of a host name between dots.
fn is_host_label(label: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    !label.is_empty() && label.len() <= 63 && label.chars().all(is_letter)
}
