//! Image references as types: parsed once, valid from then on.
//!
//! | file | contents |
//! |---|---|
//! | `image` | an image with its tag and digest |
//! | `parts` | a reference whose tag and digest are optional |
//! | `address` | the address of a repository at a registry |
//! | `tag`, `tag_list` | a tag; many tags in one allocation |
//! | `digest` | a digest |

pub mod address;
pub mod digest;
pub mod image;
pub mod parts;
pub mod tag;
pub mod tag_list;

pub use address::{AddressError, RepositoryAddress, Scheme};
pub use digest::{Digest, DigestError};
pub use image::{ImageName, ImageReference, ReferenceError};
pub use parts::ReferenceParts;
pub use tag::{Tag, TagError};
pub use tag_list::{SortedTags, TagList};
