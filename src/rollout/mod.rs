//! Rollouts: live objects of a cluster and the previous status → status, history, REST documents.
//!
//! A *component* is a workload that runs the image of a policy, or an applier in a cluster that is not watched. All
//! components of a policy are its *deployment*. The room computes values from values: time is an argument, and the
//! state depends only on the observed objects and on our own last status, so a restart loses nothing.
//!
//! | module | takes → gives |
//! |---|---|
//! | [`objects`] | thin types of the watched kinds: only the fields in use |
//! | [`place`] | the location of a marker → the image that it wants |
//! | [`before`] | a policy, its automations and places → what blocks the commit; the commit and the revision |
//! | [`watched`] | an object of any watched kind → its identity, images and ownership marks |
//! | [`index`] | objects and places → those that match each other |
//! | [`tie`] | the places of a policy and objects → the objects that belong to the places |
//! | [`components`] | places, objects and the previous status → the components of a policy |
//! | [`image`] | the image of an object and the wanted image → whether they are the same |
//! | [`assess`] | one object that has the wanted image → its progress, by the rule of its kind |
//! | [`pods`] | the pods that have the wanted image → their error |
//! | [`applier`] | the object that applies a workload → its revision, and a failure |
//! | [`message`] | text from a cluster → safe and short text |
//! | [`aggregate`] | components and an error before the rollout → state, order, summary, progress |
//! | [`cause`] | a report → the cause of its state as one text, with its code |
//! | [`absent`] | the previous components → those whose place had no object |
//! | [`history`] | components and the previous history → the images that were deployed |
//! | [`records`] | records of deployments → the entries of a history, of workloads or nodes |
//! | [`conditions`] | the aggregate state → the conditions of kstatus |
//! | [`bounds`] | texts from clusters → texts that the schema of the status accepts |
//! | [`future`] | a stored status → one without times in the future |
//! | [`outage`] | a cluster that does not answer → its deployments as they are shown meanwhile |
//! | [`report`] | all of these → the status of a deployment |
//! | [`event`] | two reports of a deployment → the event of its rollout |
//! | [`steps`] | a report → the steps chosen, committed, applied and running |
//! | [`document`] | a DeploymentStatus → the documents of the REST API |

pub mod absent;
pub mod aggregate;
pub mod applier;
pub mod assess;
pub mod before;
pub mod bounds;
pub mod cause;
pub mod components;
pub mod conditions;
pub mod document;
pub mod event;
pub mod future;
pub mod history;
pub mod image;
pub mod index;
pub mod message;
pub mod objects;
pub mod outage;
pub mod place;
pub mod pods;
pub mod records;
pub mod report;
pub mod steps;
pub mod tie;
pub mod watched;
