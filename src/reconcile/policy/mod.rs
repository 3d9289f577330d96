//! An ImagePolicy, once.
//!
//! [`request`] says what the policy asks for, [`access`] whether it may use its repository; [`ages`] asks how old images
//! are, where that matters; [`choice`] is the tag that
//! counts, which may be an earlier one than the winner; [`digest`] says what is known of its digest, and what the
//! registry is to be asked; [`following`] is for the schedule by which digests are looked up; [`report`] says what the status then is, what is announced, and when to look again. A [`run`] goes
//! through all of it.

pub mod access;
pub mod ages;
pub mod choice;
pub mod digest;
pub mod following;
pub mod report;
pub mod request;
pub mod run;
