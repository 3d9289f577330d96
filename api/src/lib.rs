//! The Kubernetes kinds that Tagboat reads and serves, as plain types without a client.
//!
//! Three kinds are Flux's image kinds, equal to Flux's in schema and meaning: [`ImageRepository`] (the image to
//! scan), [`ImagePolicy`] (the rule that chooses a tag) and [`ImageUpdateAutomation`] (the git repository to update).
//! The fourth, [`GitRepository`], is the part of Flux's source kind that an automation needs. Two kinds are our own,
//! and optional: [`DeploymentStatus`] reports whether the image of a policy is running, and [`NodePool`] rolls out an OS
//! image on nodes.
//!
//! | module | contents |
//! |---|---|
//! | [`automation`], [`policy`], [`repository`], [`git_repository`] | one kind of Flux's each: spec, status, accessors |
//! | [`mod@deployment_status`] | our kind DeploymentStatus, and the states of a rollout |
//! | [`mod@node_pool`] | our kind NodePool |
//! | [`mod@kind`] | the list of Flux's kinds |
//! | [`mod@reference`], [`duration`], [`condition`] | types that several kinds share |
//! | [`v1beta2`] | differences of the older version v1beta2 |
//! | [`crds`] | the CustomResourceDefinitions, and their files |
//! | [`mod@selector`], [`mod@label`] | label selectors, keys and values of labels, held against Kubernetes' rules |
//! | [`mod@substitution`] | placeholders that are substituted before a manifest is applied |
//! | [`settings`] | our own settings: the annotations `tagboat.dev/…` |
//! | [`mod@nearest`] | suggestions for misspelled names |
//! | [`mod@unknown_fields`] | fields of a manifest file that the schema does not have |
//!
//! Two rules apply to Flux's kinds. An unknown field is ignored, and an enumeration accepts unknown values (`Other`),
//! because an object written by a newer Flux must not make the rest unreadable. And a default is in the schema as
//! well as in the type, because a manifest file does not pass through an API server.

#![deny(missing_docs)]
#![allow(clippy::duplicated_attributes, reason = "every printer column repeats the keys of the one before")]

pub mod automation;
pub mod condition;
pub mod crds;
pub mod deployment_status;
pub mod duration;
mod fields;
pub mod git_repository;
pub mod kind;
pub mod label;
pub mod nearest;
pub mod node_pool;
mod null;
pub mod object_name;
mod open_enum;
pub mod policy;
pub mod reference;
pub mod repository;
pub mod selector;
pub mod settings;
pub mod substitution;
pub mod unknown_fields;
pub mod v1beta2;

pub use automation::ImageUpdateAutomation;
pub use condition::{Condition, Reason};
pub use deployment_status::DeploymentStatus;
pub use duration::GoDuration;
pub use git_repository::GitRepository;
pub use kind::Kind;
pub use node_pool::NodePool;
pub use object_name::ObjectName;
pub use policy::ImagePolicy;
pub use reference::ImageRef;
pub use repository::ImageRepository;
pub use unknown_fields::KnownFields;

/// The API group of the three image kinds.
pub const IMAGE_GROUP: &str = "image.toolkit.fluxcd.io";

/// The API group of GitRepository.
pub const SOURCE_GROUP: &str = "source.toolkit.fluxcd.io";

/// The API group of our own kinds.
pub const OWN_GROUP: &str = "tagboat.dev";

/// The API version of our own kinds.
pub const OWN_VERSION: &str = "v1alpha1";

/// The stored API version of Flux's kinds, which the types of this crate represent.
pub const VERSION: &str = "v1";

/// The older API version of Flux's kinds that is still served and read.
pub const DEPRECATED_VERSION: &str = "v1beta2";

/// The finalizer of Flux's image controllers, and ours.
pub const FINALIZER: &str = "finalizers.fluxcd.io";

/// The annotation that requests an immediate reconcile.
///
/// Each new value is one request.
pub const RECONCILE_REQUEST_ANNOTATION: &str = "reconcile.fluxcd.io/requestedAt";

/// The annotation that makes a request a forced one.
///
/// It has the same value as the request.
pub const FORCE_REQUEST_ANNOTATION: &str = "reconcile.fluxcd.io/forceAt";
