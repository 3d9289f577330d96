//! Places: the locations of markers, each with the image parts that the marker writes.
//!
//! The scan of an automation gives the places; the matching of workloads takes them.

use tagboat_api::ObjectName;
use tagboat_api::deployment_status::CommitRef;

use super::image::WantedImage;
use crate::reference::ImageReference;
use crate::update::{Field, ObjectIdentifier};

/// The maximum number of places of an automation.
pub const MAX_PLACES: usize = 10_000;

/// The location of one marker.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The policy that the marker names.
    pub policy: ObjectName,
    /// The document that contains the marker.
    pub document: ObjectIdentifier,
    /// The file, relative to the root of the repository.
    pub file: String,
    /// The line of the marker, counted from 1.
    pub line: usize,
    /// The part of the image that the marker writes; never the name alone.
    pub field: Field,
    /// The JSON Pointer (RFC 6901) from the object to the value, if known.
    pub pointer: Option<String>,
    /// The marked value in the scanned revision.
    ///
    /// If we pushed a commit to the branch of the revision, it is the value after that commit.
    pub value: String,
    /// The value on the push branch, if that is another branch and has another value.
    ///
    /// A merge of the push branch would change the value to this one.
    pub proposed: Option<String>,
    /// The last commit of ours that changed the value, if this process knows it.
    pub written: Option<Written>,
}

/// A change of a marked value by a commit of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The value before.
    pub former: String,
    /// The commit.
    pub commit: CommitRef,
}

impl Place {
    /// Returns the parts of the policy's image that the marker writes.
    #[must_use]
    pub fn wanted(&self, image: &ImageReference) -> WantedImage {
        WantedImage::of_field(self.field, image)
    }

    /// Returns the value on the push branch.
    #[must_use]
    pub fn committed_value(&self) -> &str {
        self.proposed.as_ref().unwrap_or(&self.value)
    }

    /// Returns the approximate size in memory, in bytes.
    fn bytes(&self) -> usize {
        let ObjectIdentifier { api_version, kind, name, namespace } = &self.document;
        let optional =
            [&self.pointer, &self.proposed, &self.written.as_ref().map(|written| written.former.clone())];
        let texts = [api_version, kind, name, namespace, &self.file, &self.value, &self.policy.name];
        let texts = texts.into_iter().chain(optional.into_iter().flatten()).map(String::len).sum::<usize>();
        size_of::<Self>() + texts + self.policy.namespace.len()
    }

    /// Returns the location as `file:line`.
    #[must_use]
    pub fn location(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// The places of an automation, with the revision in which they were found.
#[derive(Clone, Debug, PartialEq)]
pub struct ScannedPlaces {
    /// The automation.
    pub automation: ObjectName,
    /// The GitRepository from which the automation reads.
    pub source: ObjectName,
    /// The URL of the git repository.
    pub repository: String,
    /// The revision that has the places, such as `main@sha1:…`.
    ///
    /// If the automation pushes to another branch, it is still the revision from which the automation reads.
    pub revision: String,
    /// The branch from which the automation reads; `None` for a tag or a commit.
    pub checkout: Option<String>,
    /// The branch to which the automation pushes.
    pub push: String,
    /// The places, at most [`MAX_PLACES`], in the order of policies, files and lines.
    pub places: Vec<Place>,
    /// The number of places that are left out.
    pub omitted: usize,
    /// The files that had places and do not exist any more.
    pub removed_files: Vec<String>,
}

impl ScannedPlaces {
    /// Returns the places of a policy.
    #[must_use]
    pub fn of_policy(&self, policy: &ObjectName) -> &[Place] {
        let start = self.places.partition_point(|place| place.policy < *policy);
        let end = self.places.partition_point(|place| place.policy <= *policy);
        &self.places[start..end]
    }

    /// Returns the policies that have places, in ascending order.
    pub fn policies(&self) -> impl Iterator<Item = &ObjectName> {
        self.places.chunk_by(|left, right| left.policy == right.policy).map(|places| &places[0].policy)
    }

    /// Returns the approximate size in memory, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let places = self.places.iter().map(Place::bytes).sum::<usize>();
        let removed = self.removed_files.iter().map(|file| size_of::<String>() + file.len()).sum::<usize>();
        (size_of::<Self>() + places + removed) as u64
    }

    /// Returns true if two scans read the same revision and files from the same source.
    #[must_use]
    pub fn is_same_source(&self, other: &Self) -> bool {
        let Self {
            automation: _,
            source,
            repository,
            revision,
            checkout,
            push,
            places: _,
            omitted: _,
            removed_files,
        } = self;
        *source == other.source
            && *repository == other.repository
            && *revision == other.revision
            && *checkout == other.checkout
            && *push == other.push
            && *removed_files == other.removed_files
    }

    /// Puts the places into the order of policies, files and lines.
    pub fn sort(&mut self) {
        self.places.sort_by(|left, right| {
            (&left.policy, &left.file, left.line).cmp(&(&right.policy, &right.file, right.line))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "n".into(), name: name.into() }
    }

    fn place(policy: &str, file: &str, line: usize) -> Place {
        Place {
            policy: name(policy),
            document: ObjectIdentifier::default(),
            file: file.into(),
            line,
            field: Field::Tag,
            pointer: None,
            value: "1".into(),
            proposed: None,
            written: None,
        }
    }

    #[test]
    fn the_places_of_a_policy_are_in_the_order_of_files_and_lines() {
        let mut scan = ScannedPlaces {
            automation: name("fleet"),
            source: name("fleet"),
            repository: "https://git.example/fleet".into(),
            revision: "main@sha1:1".into(),
            checkout: Some("main".into()),
            push: "main".into(),
            places: vec![place("b", "x", 2), place("a", "z", 1), place("b", "x", 1), place("b", "w", 9)],
            omitted: 0,
            removed_files: Vec::new(),
        };
        scan.sort();
        let locations = |policy: &str| -> Vec<String> {
            scan.of_policy(&name(policy)).iter().map(Place::location).collect()
        };
        assert_eq!(locations("b"), ["w:9", "x:1", "x:2"]);
        assert_eq!((locations("a"), locations("c")), (vec!["z:1".to_owned()], vec![]));
        assert_eq!(scan.policies().collect::<Vec<_>>(), [&name("a"), &name("b")]);
    }

    #[test]
    fn a_place_wants_the_parts_that_its_marker_writes() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let image = ImageReference::parse(&format!("ghcr.io/org/app:1@{digest}")).unwrap();
        for (field, expected) in [
            (Field::Reference, (true, true)),
            (Field::TagAndDigest, (true, true)),
            (Field::Tag, (true, false)),
            (Field::Digest, (false, true)),
        ] {
            let place = Place { field, ..place("app", "apps/app.yaml", 7) };
            let wanted = place.wanted(&image);
            assert_eq!((wanted.tag.is_some(), wanted.digest.is_some()), expected, "{field:?}");
            assert_eq!((wanted.repository, place.location()), (image.name.clone(), "apps/app.yaml:7".into()));
        }
    }
}
