//! The image repository of a policy.

use crate::reference::{Digest, ImageName, ImageReference};
use crate::rollout::image::{ObjectImage, WantedImage, is_same_or_mirrored};

/// The image repository of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The name.
    pub name: ImageName,
    /// The digest of the selected image, which identifies copies on other hosts.
    pub digest: Option<Digest>,
}

impl From<&ImageReference> for Repository {
    fn from(image: &ImageReference) -> Self {
        Self { name: image.name.clone(), digest: image.digest.clone() }
    }
}

impl Repository {
    /// Returns `true` for an image of the repository or of its mirrored form.
    ///
    /// A copy of the selected image on another host is one, too.
    #[must_use]
    pub fn has(&self, image: &ObjectImage) -> bool {
        let is_copy = || {
            let (repository, digest) = (self.name.clone(), self.digest.clone());
            digest.is_some() && WantedImage { repository, tag: None, digest }.is_met_by(image)
        };
        is_same_or_mirrored(&self.name, &image.name) || is_copy()
    }

    /// Returns `true` if a text is an image of the repository.
    #[must_use]
    pub fn has_text(&self, image: &str) -> bool {
        ObjectImage::parse(image).is_ok_and(|image| self.has(&image))
    }
}
