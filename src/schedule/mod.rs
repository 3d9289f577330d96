//! The times at which images may be written.
//!
//! Windows and freezes are values of annotations. An [`Agenda`] combines those that apply to an automation: at a
//! time it is open, or closed by one of them, and it lists the next changes. The current time is an argument. Time
//! zones come from the database in the program only, so that results are the same on every system.
//!
//! | module | contents |
//! |---|---|
//! | `agenda` | windows and freezes of several objects → open, or closed by one of them |
//! | `changes` | the next changes of an agenda, by a search of bounded length |
//! | `cause` | the reason why an agenda is closed, or changes |
//! | `windows` | a list of windows, and the rule by which it is open |
//! | `entry` | a window of the list, which recurs or takes place once |
//! | `recurrence` | a cron expression in a time zone → starts, also where clocks change |
//! | `cron` | the syntax of a cron expression |
//! | `freeze` | a freeze with a reason, a beginning and an end |
//! | `period` | the time between two times |
//! | `local_time` | names of time zones, and times with or without an offset |
//! | `annotation` | the YAML of an annotation |
//! | `error` | the sentences about invalid values |

mod agenda;
mod annotation;
mod cause;
mod changes;
mod cron;
mod entry;
mod error;
mod freeze;
mod local_time;
mod period;
mod recurrence;
#[cfg(test)]
mod walk;
mod windows;

pub use agenda::{Agenda, Rule, Source, State};
pub use cause::{Cause, CauseKind, ClosedReason};
pub use changes::{Change, Changes, Outlook};
pub use entry::{Entry, EntryKind};
pub use error::{EntryDefect, EntryPlace, SettingsError};
pub use freeze::Freeze;
pub use local_time::parse_time;
pub use windows::Windows;
