//! What an object asks for, and doing it once. The same code serves the cluster and the command line.

pub mod automation;
pub mod conditions;
pub mod course;
pub mod cross_namespace;
pub mod lookup;
pub mod policy;
pub mod registries;
pub mod repository;
pub mod status;
pub mod tags;
pub mod times;
