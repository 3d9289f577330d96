//! Check of an image against a policy, without tags and ages.

use jiff::Timestamp;
use tagboat_api::{ImagePolicy, ImageRef, ImageRepository};

use crate::policy::{Ages, TagAge};
use crate::reconcile::policy::request::Request;
use crate::reconcile::repository::exclusion::Exclusion;
use crate::reference::{RepositoryAddress, TagList};

/// Returns true if a policy and its repository, if known, allow an image.
///
/// Invalid objects allow no image.
pub(super) fn allows(policy: &ImagePolicy, repository: Option<&ImageRepository>, image: &ImageRef) -> bool {
    let Ok(Ok(policy)) = Request::of(policy).map(|request| request.policy.compile()) else { return false };
    let tags: TagList = [image.tag.as_str()].into_iter().collect();
    let ages = Ages { now: Timestamp::UNIX_EPOCH, age_of: &|_| TagAge::ALWAYS_OLD_ENOUGH };
    let is_chosen = policy.select(&tags, ages).is_ok_and(|selection| selection.latest().is_some());
    is_chosen && repository.is_none_or(|repository| has(repository, image, &tags))
}

/// Returns true if an image is one of a repository and not excluded.
fn has(repository: &ImageRepository, image: &ImageRef, tags: &TagList) -> bool {
    let spec = &repository.spec;
    let is_own = RepositoryAddress::parse(&spec.image, spec.insecure)
        .is_ok_and(|address| address.to_string() == image.name);
    let exclusion = Exclusion::parse(&spec.effective_exclusion_list());
    is_own
        && exclusion
            .is_ok_and(|exclusion| exclusion.apply(tags, || Ok(())).is_ok_and(|tags| !tags.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(range: &str, annotations: &Value) -> ImagePolicy {
        serde_json::from_value(json!({
            "metadata": {"namespace": "n", "name": "p", "annotations": annotations},
            "spec": {"imageRepositoryRef": {"name": "r"}, "policy": {"semver": {"range": range}}},
        }))
        .unwrap()
    }

    #[test]
    fn an_image_is_allowed_by_its_tag_and_never_by_its_age() {
        for (range, annotations, tag, expected) in [
            ("1.x", json!({}), "1.2.0", true),
            ("1.x", json!({}), "2.0.0", false),
            ("1.x", json!({"tagboat.dev/exclude": "1.2.0"}), "1.2.0", false),
            ("1.x", json!({"tagboat.dev/exclude": "1.2.1"}), "1.2.0", true),
            ("1.x", json!({"tagboat.dev/minimum-age": "52w"}), "1.2.0", true),
            ("1.x", json!({"tagboat.dev/exclud": "1.2.1"}), "1.2.0", false),
            ("one", json!({}), "1.2.0", false),
        ] {
            let image = ImageRef { name: "r.io/app".to_owned(), tag: tag.to_owned(), digest: None };
            assert_eq!(allows(&policy(range, &annotations), None, &image), expected, "{range} {annotations}");
        }
    }

    #[test]
    fn an_image_is_allowed_if_its_repository_has_it() {
        for (image, exclusions, expected) in [
            ("r.io/app", json!([]), true),
            ("r.io/other", json!([]), false),
            ("r.io/app", json!(["^1\\.2"]), false),
            ("r.io/app", json!(["^1\\.3"]), true),
            ("r.io/app", json!(["("]), false),
        ] {
            let repository = serde_json::from_value(json!({
                "metadata": {"namespace": "n", "name": "r"},
                "spec": {"image": image, "interval": "1m", "exclusionList": exclusions},
            }))
            .unwrap();
            let latest = ImageRef { name: "r.io/app".to_owned(), tag: "1.2.0".to_owned(), digest: None };
            let is_allowed = allows(&policy("*", &json!({})), Some(&repository), &latest);
            assert_eq!(is_allowed, expected, "{image} {exclusions}");
        }
    }
}
