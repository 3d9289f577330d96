//! Kubernetes objects, wherever they come from.

pub mod manifests;
