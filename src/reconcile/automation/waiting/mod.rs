//! Decides what an automation may write now, and reports why it waits.
//!
//! | file | contents |
//! |---|---|
//! | `rules` | the annotations that decide, of the automation and of Namespaces |
//! | `phrases` | the phrases of rules in messages |
//! | `clock` | the system clock, with a memory of its changes |
//! | `gate` | the rules at the present time: open or closed |
//! | `write_rules` | the source of the rules for all automations |
//! | `quiet` | quiet periods, in which images wait until they stop changing |
//! | `groups` | release groups whose members have different values |
//! | `wait` | what waits, why and until when; condition `UpdatesWaiting` |
//! | `run_wait` | the waiting of one run |
//! | `earlier` | the wait of an earlier run |
//! | `reported` | a wait that the condition reports |

mod clock;
mod earlier;
mod gate;
mod groups;
mod phrases;
mod quiet;
mod reported;
mod rules;
mod run_wait;
mod wait;
mod write_rules;

pub use clock::SteadyClock;
pub use earlier::{EarlierRun, KnownWait};
pub use gate::{Closed, GateState, WriteGate};
pub use groups::{GroupHolds, Images};
pub use phrases::{
    BY_CHANGED_CLOCK, source_of_all_namespaces, source_of_automation, source_of_namespace,
    unknown_annotation_of,
};
pub use quiet::{ImageChanges, QuietPeriod};
pub use reported::ReportedWait;
pub use rules::{
    FREEZE, FREEZE_ALL, NamespaceRules, ParsedRules, RulesError, RulesReader, WINDOWS, own_windows,
};
pub use run_wait::{BY_OTHERS, Change, RunWait};
pub use wait::{Wait, WaitOutcome, WaitReason};
pub use write_rules::WriteRules;
