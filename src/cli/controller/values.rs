//! Values of flags, parsed by type.

use std::fmt::Display;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use tagboat_api::GoDuration;

use super::options::ControllerArguments;
use crate::cli::{Failure, service};

impl ControllerArguments {
    pub(super) fn value(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// Returns a text that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        Some(self.value(name)).filter(|value| !value.is_empty())
    }

    /// Returns an address to serve at; as in Flux, `0` is none.
    pub(super) fn address(&self, name: &str) -> Result<Option<String>, Failure> {
        service::address(name, self.value(name))
    }

    pub(super) fn switch(&self, name: &str) -> bool {
        self.value(name) == "true"
    }

    pub(super) fn duration(&self, name: &str) -> Result<Duration, Failure> {
        let value = GoDuration::new(self.value(name));
        value.to_duration().map_err(|error| Failure::Usage(format!("--{name}: {error}")))
    }

    pub(super) fn parsed<T: FromStr>(&self, name: &str) -> Result<T, Failure>
    where
        T::Err: Display,
    {
        let value = self.value(name);
        value.parse().map_err(|error| Failure::Usage(format!("--{name} {value:?}: {error}")))
    }

    /// Parses a whole number; zero is an error if the type excludes it.
    pub(super) fn number<T: FromStr<Err = ParseIntError>>(&self, name: &str) -> Result<T, Failure> {
        self.value(name).parse().map_err(|error: ParseIntError| {
            let advice = match error.kind() {
                IntErrorKind::Zero => "write a whole number of 1 or more",
                IntErrorKind::PosOverflow => "write a smaller number",
                _ => "write a whole number without a sign, such as 4",
            };
            self.invalid(name, advice)
        })
    }

    /// Parses a list of names of SSH algorithms.
    ///
    /// Other text must not get into an option of ssh.
    pub(super) fn list(&self, name: &str) -> Result<Vec<String>, Failure> {
        let names = self.value(name).split(',').map(str::trim).filter(|item| !item.is_empty());
        let names: Vec<String> = names.map(str::to_owned).collect();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._@+^*".contains(c);
        if names.iter().all(|item| item.chars().all(is_name)) {
            Ok(names)
        } else {
            Err(self.invalid(name, "write names of algorithms, separated by commas"))
        }
    }

    pub(super) fn invalid(&self, name: &str, advice: &str) -> Failure {
        service::invalid(name, self.value(name), advice)
    }
}
