//! Rollouts from a pushed tag to the last pod, on real servers.
//!
//! The program scans the registry, selects the tag and commits it. The tests apply the commit as Flux does, and play
//! the kubelet. At each step, all views of the deployment must report the same.
//!
//! | files | contents |
//! |---|---|
//! | `fleet` | the servers, the objects and the program |
//! | `flux` | the controllers of Flux, played by the tests |
//! | `step`, `views`, `page` | the expected report of a step; the five views and their comparison; the web page as text |
//! | `rollouts`, `failures`, `obstacles`, `outages`, `node_pools` | the tests |

mod failures;
mod fleet;
mod flux;
mod node_pools;
mod obstacles;
mod outages;
mod page;
mod rollouts;
mod step;
mod views;
