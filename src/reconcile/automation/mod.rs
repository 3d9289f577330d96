//! An ImageUpdateAutomation, once.
//!
//! [`request`] says what to write, [`source`] where and how; [`login`] finds the way there, which automations that are
//! reconciled together share ([`batch_logins`]), and [`signing`] the key that signs. [`reselection`] reads the policies again after a wait. [`transaction`] hands the
//! [`proposal`] to the writer and turns its answer into a [`conclusion`], of which [`report`] makes the status and
//! the [`event`]; [`findings`] add what is wrong with markers. A [`batch`] carries out several at once. A
//! [`compare`] commits nothing and compares what it would have committed with what another controller pushes.

pub mod batch;
pub mod batch_logins;
pub mod compare;
pub mod conclusion;
pub mod event;
pub mod findings;
pub mod label;
pub mod login;
pub mod proposal;
pub mod report;
pub mod request;
pub mod reselection;
pub mod selector;
pub mod signing;
pub mod source;
pub mod transaction;
