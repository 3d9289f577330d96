//! Reconciles ImageUpdateAutomations, alone or several on one repository.
//!
//! | file | contents |
//! |---|---|
//! | `request`, `source` | the wanted values; repository, branches and commit settings, checked in Flux's order |
//! | `login`, `provider_login`, `batch_logins` | the credentials for the repository, of its Secret or of a provider, shared by automations that are reconciled together |
//! | `signing` | the signing key |
//! | `reselection` | the policies, read again after a wait |
//! | `transaction`, `proposal`, `proposal_error` | the proposal of an automation, handed to the writer; its error |
//! | `conclusion`, `report`, `event` | the outcome; the status and the event made from it |
//! | `branch_plan`, `delivered` | the automation's own branches; condition `Delivery`, and their events |
//! | `shown_branch` | names of branches as messages show them |
//! | `siblings` | the active automations of one repository, and the branches that they render |
//! | `findings` | conditions `MarkersResolved` and `CommitsSigned` |
//! | `forge_login`, `forge_signing` | the login at the API of the forge; commits that it signs |
//! | `places` | the places of markers, for reports of rollouts |
//! | `batch` | reconciles several automations in one transaction |
//! | `delivery`, `pull_requests` | decisions on branches and pull requests; the work at the forge that follows from them |
//! | `waiting` | windows and freezes, in which nothing is written |
//! | `compare` | compare mode: compares the commit that it would make with that of another controller |

pub mod batch;
pub mod batch_logins;
pub mod branch_plan;
pub mod compare;
pub mod conclusion;
pub mod delivered;
pub mod delivery;
pub mod event;
pub mod findings;
pub mod forge_login;
pub mod forge_signing;
pub mod login;
pub mod observations;
pub mod places;
pub mod preflight;
pub mod proposal;
pub mod proposal_error;
pub mod provider_login;
pub mod pull_requests;
pub mod report;
pub mod request;
pub mod reselection;
pub mod reverts;
mod shown_branch;
pub mod siblings;
pub mod signing;
pub mod source;
pub mod transaction;
pub mod waiting;
