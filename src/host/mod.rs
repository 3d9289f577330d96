//! The host of a node: its images, its reasons for a reboot, and its reboot.
//!
//! The agent runs in a container, so each program runs behind a prefix that enters the namespaces of the host, and the
//! files of the host are read by its programs, too. What they print is foreign text: bounded, and made printable. The
//! decisions are in [`nodes`](crate::nodes).
//!
//! | file | contents |
//! |---|---|
//! | `select` | the kinds of hosts, and the choice of one |
//! | `bootc` | hosts that boot images of bootc |
//! | `bootc_status` | the output of `bootc status`, parsed |
//! | `update_engine` | hosts that update themselves by update-engine, as Flatcar does |
//! | `reboot_required` | hosts that update themselves, and ask for a reboot by a file |
//! | `bus` | the system bus of the host, with limits of time |
//! | `system` | the boot ID, the version and the reboot of any host |
//! | `os_release` | the version in `os-release`, parsed |
//! | `command` | the builder of processes, with limits of time and output |
//! | `excerpt` | the parts of foreign text that are shown |

mod bootc;
pub mod bootc_status;
mod bus;
mod command;
mod excerpt;
pub mod os_release;
mod reboot_required;
mod select;
mod system;
#[cfg(test)]
mod testing;
mod update_engine;

use std::future::pending;

use futures::future::{BoxFuture, FutureExt};
use thiserror::Error;

pub use bootc::Bootc;
pub(crate) use bus::is_address;
pub use bus::{BusError, DEFAULT_ADDRESS};
pub use command::{CommandError, DEFAULT_PREFIX, OnHost};
pub use reboot_required::{DEFAULT_SENTINEL, RebootRequired};
pub use select::{HostKind, HostOptions, select};
pub use update_engine::UpdateEngine;

use crate::nodes::Host as HostState;
use bootc_status::StatusError;

/// A host, as the agent sees and changes it.
///
/// Dropping a future kills the program that runs for it.
pub trait Host: Send + Sync {
    /// Reports the booted and the staged image, whether a reboot is required, and the boot.
    fn state(&self) -> BoxFuture<'_, Result<HostState, HostError>>;

    /// Stages an image, and waits until it is staged.
    ///
    /// It ends the staging of another image first. The host goes on with it if the future is dropped or the agent is
    /// killed; see [`stop_staging`](Self::stop_staging). A host without images refuses.
    fn stage<'a>(&'a self, _reference: &'a str) -> BoxFuture<'a, Result<(), HostError>> {
        async { Err(HostError::NoImages) }.boxed()
    }

    /// Ends a staging, also one that an earlier agent began.
    fn stop_staging(&self) -> BoxFuture<'_, Result<(), HostError>> {
        async { Ok(()) }.boxed()
    }

    /// Begins a reboot.
    fn reboot(&self) -> BoxFuture<'_, Result<(), HostError>>;

    /// Waits for a notice of the host that its state changed.
    ///
    /// No notice is lost if the future is dropped. It never ends for a host without notices, whose state the agent reads at its interval.
    fn changed(&self) -> BoxFuture<'_, ()> {
        pending().boxed()
    }
}

/// The error of a host.
#[derive(Debug, Error)]
pub enum HostError {
    /// A program failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The bus, or a program on it, failed.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The status of bootc is not usable.
    #[error(transparent)]
    Status(#[from] StatusError),
    /// An image is wanted that bootc cannot take from a registry.
    #[error("{reference:?} is not a reference of an image in a registry")]
    Reference {
        /// The reference, or the beginning of it.
        reference: String,
    },
    /// An image is wanted for a host without images.
    #[error("the host has no images, so none can be staged")]
    NoImages,
    /// The boot ID is not one.
    #[error("the boot ID of the host is not a UUID")]
    BootId,
    /// An update of update-engine failed.
    #[error("update-engine reports that its update failed")]
    UpdateFailed,
    /// update-engine has a status that is none of the known ones.
    #[error("update-engine reports an unknown status, \"{status}\"")]
    UpdateStatus {
        /// The status, printable, and cut.
        status: String,
    },
    /// No kind of host applies.
    #[error(
        "{}, update-engine is not on its D-Bus, and {sentinel} does not exist; if the host asks for reboots by that file, run \
         the agent with --host=reboot-required",
        if *has_bootc { "the host is not booted from an image of bootc" } else { "bootc is missing on the host" }
    )]
    Unknown {
        /// The program `bootc` exists, but the host is not booted from an image.
        has_bootc: bool,
        /// The file by which a host asks for a reboot.
        sentinel: String,
    },
}
