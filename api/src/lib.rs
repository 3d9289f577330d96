//! The Kubernetes kinds that Tagboat reads and serves, as plain types without a client.
//!
//! Three kinds are Flux's image kinds, equal to Flux's in schema and in meaning: [`ImageRepository`] (what to
//! scan), [`ImagePolicy`] (which tag is wanted) and [`ImageUpdateAutomation`] (where to write it). The fourth,
//! [`GitRepository`], is only that part of Flux's source kind which an automation needs.
//!
//! | module | holds |
//! |---|---|
//! | [`automation`], [`policy`], [`repository`], [`git_repository`] | one kind each: spec, status, accessors |
//! | [`mod@kind`] | the kinds by their names |
//! | [`mod@reference`], [`duration`], [`condition`] | shapes that several kinds share |
//! | [`v1beta2`] | what the older version of the kinds has that v1 has not |
//! | [`crds`] | the CustomResourceDefinitions, and the files they are kept in |
//! | [`settings`] | our own settings: the annotations `tagboat.dev/…` |
//! | [`mod@nearest`] | which known name was probably meant |
//! | [`mod@unknown_fields`] | which fields of a manifest file the schema does not have |
//!
//! Two rules hold for all types. A field that is not known here is ignored, and an enumeration takes a value it
//! does not know (`Other`), because one object written by a newer Flux must not keep the rest from being read.
//! And a default stands both in the schema and in the type, because a manifest file passes no API server.

#![deny(missing_docs)]
#![allow(clippy::duplicated_attributes, reason = "every printer column repeats the keys of the one before")]

pub mod automation;
pub mod condition;
pub mod crds;
pub mod duration;
mod fields;
pub mod git_repository;
pub mod kind;
pub mod nearest;
mod null;
mod open_enum;
pub mod policy;
pub mod reference;
pub mod repository;
pub mod settings;
pub mod unknown_fields;
pub mod v1beta2;

pub use automation::ImageUpdateAutomation;
pub use condition::{Condition, Reason};
pub use duration::GoDuration;
pub use git_repository::GitRepository;
pub use kind::Kind;
pub use policy::ImagePolicy;
pub use reference::ImageRef;
pub use repository::ImageRepository;
pub use unknown_fields::KnownFields;

/// The API group of the three image kinds.
pub const IMAGE_GROUP: &str = "image.toolkit.fluxcd.io";

/// The API group of GitRepository.
pub const SOURCE_GROUP: &str = "source.toolkit.fluxcd.io";

/// The API version that is stored, and that all types of this crate stand for.
pub const VERSION: &str = "v1";

/// The older API version that is still served and read.
pub const DEPRECATED_VERSION: &str = "v1beta2";

/// The finalizer that Flux's image controllers put on their objects, and so do we.
pub const FINALIZER: &str = "finalizers.fluxcd.io";

/// The annotation that asks for a reconcile at once; each new value is one request.
pub const RECONCILE_REQUEST_ANNOTATION: &str = "reconcile.fluxcd.io/requestedAt";
