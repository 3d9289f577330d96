//! The rollout of an OS image on the nodes of a pool, without I/O.
//!
//! The stage of a node is a label, and all state that decides is on the node: labels and annotations, which only the
//! controller, the agent, or a user writes. So [`step`] is a function of a node and its pool, and a restart loses
//! nothing. Each [`Step`] is one patch.
//!
//! | file | contents |
//! |---|---|
//! | `keys` | the labels and annotations of a node |
//! | `stage` | the seven stages of a node |
//! | `agent` | the decisions of the agent |
//! | `agent_state` | the states that the agent reports |
//! | `node` | a node, with the fields that decide |
//! | `node_object` | the Node as the API server has it |
//! | `document` | pools with their nodes as documents |
//! | `drain`, `drain_pace` | the pods that must leave a node; those that are evicted now |
//! | `pool` | the settings of a pool, and their time limits |
//! | `event` | the events of a pool |
//! | `health` | the problems of a node, which keep it in its stage |
//! | `membership` | the pool of each node |
//! | `next` | the transition table |
//! | `release` | the steps of a node that left its pool |
//! | `patch` | a step as a merge patch |
//! | `settings`, `invalid_spec` | the spec of a NodePool, checked; its error |
//! | `slots` | the idle nodes that may begin |
//! | `summary` | the status of a NodePool |
//! | `target` | the image of a pool, and the digest of its tag |
//! | `window` | the times at which a rollout may begin |

mod agent;
mod agent_state;
mod document;
mod drain;
mod drain_pace;
mod event;
mod health;
mod invalid_spec;
pub mod keys;
mod membership;
mod next;
mod node;
mod node_object;
mod patch;
mod pool;
mod release;
mod settings;
mod slots;
mod stage;
mod summary;
mod target;
mod window;

/// The field manager of the agent's patches.
pub const AGENT_FIELD_MANAGER: &str = "tagboat-agent";

pub use agent::{
    AgentReport, AgentStep, Host, HostImage, OwnUpdate, acknowledgment_patch, agent_report, agent_step,
    image_to_stage, report_patch,
};
pub use agent_state::AgentState;
pub use document::{NodeDocument, PoolDocument, PoolList, PoolView, claims};
pub use drain::{Departures, DrainRules, NodePod, NodePodStatus};
pub use drain_pace::{DrainPace, Refusal};
pub use event::{PoolEvent, PoolEventReason, pool_events};
pub use health::{Problem, next_deadline, problem};
pub use invalid_spec::{Defect, InvalidSpec};
pub use membership::{Claim, Claims, Share};
pub use next::{Action, CancelReason, Situation, Step, is_candidate, step, stray_step};
pub use node::{Attempt, Node};
pub use node_object::{NodeInfo, NodeObject, NodeSpec, NodeStatus, Readiness};
pub use patch::{patch, removal};
pub use pool::{HookPoint, Hooks, MaxUnavailable, Pool, RECONCILES, TimeLimits};
pub use release::{Release, release};
pub use settings::{Settings, image_of};
pub use slots::{Availability, HALT_THRESHOLD, availability, grants, next_window_change};
pub use stage::Stage;
pub use summary::{Conflict, Departure, Observation, departing_status, pool_status};
pub use target::Resolution;
pub use window::{Window, WindowError};

#[cfg(test)]
mod explore;
#[cfg(test)]
mod pace;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
