//! Cancellation: of all work at the end of the process, and of one proposal.
//!
//! | files | contents |
//! |---|---|
//! | `stop_token` | the stop token for all work, with a permit that expires |
//! | `cancellation` | the cancellation of one proposal |
//! | `boot_time` | a clock that goes on while the machine is suspended |

mod boot_time;
mod cancellation;
mod stop_token;

pub use boot_time::BootTime;
pub use cancellation::{Cancellation, ProcessGuard};
pub use stop_token::StopToken;
