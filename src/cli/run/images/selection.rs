//! Selection of the policies that choose, and of the repositories to scan for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tagboat_api::{ImagePolicy, ImageRef, ImageRepository, ImageUpdateAutomation};

use super::groups::with_members;
use super::sources::Policies;
use crate::cli::inputs::{secrets_of, warn_of_repository_settings, warn_of_settings};
use crate::cli::registry_login::RegistryLogin;
use crate::objects::ObjectName;
use crate::objects::manifests::Manifests;
use crate::reconcile::automation::request::{self, ImageOverrides};
use crate::reconcile::policy::request::repository_of;
use crate::reference::{ImageReference, RepositoryAddress};

/// The policies that automations select, and the repositories that they choose from.
#[derive(Debug, Default)]
pub(in crate::cli::run) struct Selection {
    /// The policies that choose.
    pub(super) policies: Policies,
    /// The policies that do not choose, with the reasons.
    pub(super) skipped: Vec<(ImagePolicy, SkipReason)>,
    /// The repositories of the policies that choose, as in the manifests.
    pub(super) repositories: BTreeMap<ObjectName, ImageRepository>,
    /// The images of `--latest` for policies that could choose.
    pub(super) overrides: Vec<PolicyOverride>,
}

/// An image of `--latest` that replaces the choice of a policy.
#[derive(Clone, Debug)]
pub(super) struct PolicyOverride {
    pub(super) policy: ImagePolicy,
    /// The repository of the policy, as in its manifest.
    pub(super) repository: ImageRepository,
    /// The image, with its name in the repository.
    pub(super) image: ImageRef,
    /// True if the policy would choose in this run.
    pub(super) is_in_place_of_choice: bool,
}

/// The reason for which a policy does not choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SkipReason {
    /// It is suspended.
    Suspended,
    /// Nothing is scanned in this run.
    WithoutScans,
    /// Its repository is not among the manifests.
    WithoutRepository(ObjectName),
}

impl SkipReason {
    /// Returns the message about a policy without an image, in the state or its manifest.
    pub(super) fn without_image(&self, policy: &ObjectName) -> String {
        match self {
            Self::Suspended => format!(
                "ImagePolicy {policy} has no image: it is suspended, no recorded run chose one, and its \
                 manifest has no status.latestRef"
            ),
            Self::WithoutScans => format!(
                "ImagePolicy {policy} has no image: nothing is scanned, no recorded run chose one, and its \
                 manifest has no status.latestRef"
            ),
            Self::WithoutRepository(repository) => format!(
                "ImagePolicy {policy} has no image: the ImageRepository {repository}, from whose tags it chooses, is \
                 not among the manifests, and neither is a status.latestRef"
            ),
        }
    }
}

impl Selection {
    /// Selects policies of automations that are not suspended.
    ///
    /// Those that are not suspended, have no image of `--latest`, and have a repository among the manifests, choose.
    pub(in crate::cli::run) fn of(
        manifests: &Manifests,
        automations: &[ImageUpdateAutomation],
        given: &ImageOverrides,
    ) -> Self {
        let mut selection =
            Self { overrides: overrides_of(manifests, automations, given, true), ..Self::default() };
        let selected = selected(manifests, automations, given);
        let repositories: BTreeMap<ObjectName, &ImageRepository> =
            manifests.repositories().map(|repository| (ObjectName::of(repository), repository)).collect();
        for policy in manifests.policies().filter(|policy| selected.contains(&ObjectName::of(*policy))) {
            let (name, repository) = (ObjectName::of(policy), repository_of(policy));
            match repositories.get(&repository) {
                Some(_) if policy.spec.suspend => {
                    selection.skipped.push((policy.clone(), SkipReason::Suspended));
                }
                Some(found) => {
                    selection.policies.insert(name, Arc::new(policy.clone()));
                    selection.repositories.insert(repository, (*found).clone());
                }
                None => selection.skipped.push((policy.clone(), SkipReason::WithoutRepository(repository))),
            }
        }
        selection
    }

    /// Selects policies for a run that scans nothing.
    pub(in crate::cli::run) fn without_scans(
        manifests: &Manifests,
        automations: &[ImageUpdateAutomation],
        given: &ImageOverrides,
    ) -> Self {
        let selected = selected(manifests, automations, given);
        let policies = manifests.policies().filter(|policy| selected.contains(&ObjectName::of(*policy)));
        let skipped = policies.map(|policy| (policy.clone(), SkipReason::WithoutScans)).collect();
        Self { skipped, overrides: overrides_of(manifests, automations, given, false), ..Self::default() }
    }

    /// Warns of invalid settings of objects that this run does not reconcile.
    ///
    /// A reconcile fails with them.
    pub(in crate::cli::run) fn warn_of_idle_settings(&self, manifests: &Manifests) {
        let policies = manifests.policies();
        policies.filter(|one| !self.policies.contains_key(&ObjectName::of(*one))).for_each(warn_of_settings);
        let repositories = manifests.repositories();
        repositories
            .filter(|one| !self.repositories.contains_key(&ObjectName::of(*one)))
            .for_each(warn_of_repository_settings);
    }

    /// Returns true if a policy belongs to the run, whether it chooses or not.
    pub(super) fn has(&self, policy: &ObjectName) -> bool {
        self.policies.contains_key(policy)
            || self.skipped.iter().any(|(skipped, _)| ObjectName::of(skipped) == *policy)
    }

    /// Returns true if there are repositories to scan.
    pub(in crate::cli::run) fn scans_anything(&self) -> bool {
        !self.repositories.is_empty()
    }

    /// Returns the Secrets of repositories and their service accounts that scans with this login read.
    pub(in crate::cli::run) fn secrets(
        &self,
        manifests: &Manifests,
        login: RegistryLogin,
    ) -> Vec<ObjectName> {
        let repositories = self.repositories.values();
        repositories.flat_map(|repository| secrets_of(repository, manifests, login)).collect()
    }
}

/// Returns the images of `--latest` for selected policies with a repository among the manifests.
///
/// Other policies never choose an image that could be compared with them.
fn overrides_of(
    manifests: &Manifests,
    automations: &[ImageUpdateAutomation],
    given: &ImageOverrides,
    is_scanned: bool,
) -> Vec<PolicyOverride> {
    let selected = all_selected(manifests, automations, given);
    let policies = manifests.policies().filter(|policy| selected.contains(&ObjectName::of(*policy)));
    let found = policies.filter_map(|policy| {
        let image = given.get(&ObjectName::of(policy))?.as_ref()?;
        let name = repository_of(policy);
        let repository = manifests.repositories().find(|repository| ObjectName::of(*repository) == name)?;
        let image = image_of(repository, image);
        let is_in_place_of_choice = is_scanned && !policy.spec.suspend;
        Some(PolicyOverride {
            policy: policy.clone(),
            repository: repository.clone(),
            image,
            is_in_place_of_choice,
        })
    });
    found.collect()
}

/// Returns an image with the name that its repository has, if both are equivalent.
fn image_of(repository: &ImageRepository, image: &ImageReference) -> ImageRef {
    let (spec, name) = (&repository.spec, image.name.as_str());
    let parse = |text: &str| RepositoryAddress::parse(text, spec.insecure).ok();
    let own =
        parse(&spec.image).filter(|own| parse(name).is_some_and(|it| it.canonical() == own.canonical()));
    ImageRef {
        name: own.map_or_else(|| name.to_owned(), |own| own.to_string()),
        tag: image.tag.as_str().to_owned(),
        digest: image.digest.as_ref().map(|digest| digest.as_str().to_owned()),
    }
}

/// Returns the policies that automations select and that have no image of `--latest`.
///
/// The members of their release groups belong to them.
fn selected(
    manifests: &Manifests,
    automations: &[ImageUpdateAutomation],
    given: &ImageOverrides,
) -> BTreeSet<ObjectName> {
    let mut names = with_members(&all_selected(manifests, automations, given), manifests);
    names.retain(|name| !given.contains_key(name));
    names
}

/// Returns the policies that automations select, unless those are suspended.
fn all_selected(
    manifests: &Manifests,
    automations: &[ImageUpdateAutomation],
    given: &ImageOverrides,
) -> BTreeSet<ObjectName> {
    let open = automations.iter().filter(|automation| !automation.spec.suspend);
    // An automation with an invalid selector fails later, with its own error.
    let requests =
        open.filter_map(|automation| request::of_automation(automation, manifests.policies(), given).ok());
    let mut names = BTreeSet::new();
    for request in requests {
        names.extend(request.update.setters.selected().map(|(policy, _)| policy.clone()));
    }
    names
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use serde_json::{Value, json};

    use super::*;
    use crate::objects::manifests;

    fn whole(namespace: &str, name: &str, spec: &Value) -> Value {
        json!({"metadata": {"namespace": namespace, "name": name, "labels": {"name": name}}, "spec": spec})
    }

    fn manifest(kind: &str, object: &Value) -> String {
        let mut manifest = json!({"apiVersion": "image.toolkit.fluxcd.io/v1", "kind": kind});
        manifest.as_object_mut().unwrap().extend(object.as_object().unwrap().clone());
        manifest.to_string()
    }

    fn policy(namespace: &str, name: &str, repository: &Value, more: &Value) -> String {
        let mut policy = whole(namespace, name, &json!({"imageRepositoryRef": repository, "policy": {}}));
        for (place, members) in more.as_object().unwrap() {
            let own = policy.as_object_mut().unwrap().entry(place).or_insert(json!({}));
            own.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        }
        manifest("ImagePolicy", &policy)
    }

    fn repository(namespace: &str, name: &str) -> String {
        let spec = json!({"image": "r.io/app", "interval": "1m", "secretRef": {"name": "login"},
            "certSecretRef": {"name": "authority"}});
        manifest("ImageRepository", &whole(namespace, name, &spec))
    }

    fn automation(namespace: &str, more: &Value) -> ImageUpdateAutomation {
        let mut spec = json!({"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "g"}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole(namespace, "a", &spec)).unwrap()
    }

    fn manifests() -> Manifests {
        let latest = json!({"status": {"latestRef": {"name": "i", "tag": "1"}}});
        let objects = [
            repository("n", "r"),
            repository("m", "r"),
            repository("n", "idle"),
            policy("n", "own", &json!({"name": "r"}), &json!({})),
            policy("n", "given", &json!({"name": "idle"}), &json!({})),
            policy("n", "resting", &json!({"name": "idle"}), &json!({"spec": {"suspend": true}})),
            policy("n", "across", &json!({"name": "r", "namespace": "m"}), &json!({})),
            policy("n", "stranded", &json!({"name": "none"}), &json!({})),
            policy("n", "settled", &json!({"name": "none"}), &latest),
            policy("o", "own", &json!({"name": "r", "namespace": "n"}), &json!({})),
        ];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), objects.join("\n---\n")).unwrap();
        manifests::read(&[file.path().to_owned()], None).unwrap()
    }

    fn names<'a>(names: impl IntoIterator<Item = &'a ObjectName>) -> Vec<String> {
        names.into_iter().map(ToString::to_string).collect()
    }

    #[test]
    fn repositories_of_policies_that_choose_are_scanned() {
        let given = ImageOverrides::from([(
            ObjectName { namespace: "n".to_owned(), name: "given".to_owned() },
            ImageReference::parse("r.io/app:1").ok(),
        )]);
        let selector = |name: &str| json!({"policySelector": {"matchLabels": {"name": name}}});
        for (automations, policies, repositories) in [
            (vec![], vec![], vec![]),
            (vec![automation("n", &json!({}))], vec!["n/across", "n/own"], vec!["m/r", "n/r"]),
            (vec![automation("o", &json!({}))], vec!["o/own"], vec!["n/r"]),
            (vec![automation("n", &selector("own"))], vec!["n/own"], vec!["n/r"]),
            (
                vec![automation("n", &selector("own")), automation("o", &json!({}))],
                vec!["n/own", "o/own"],
                vec!["n/r"],
            ),
            (vec![automation("n", &selector("no label"))], vec![], vec![]),
            (vec![automation("n", &json!({"suspend": true}))], vec![], vec![]),
        ] {
            let selection = Selection::of(&manifests(), &automations, &given);
            assert_eq!(names(selection.policies.keys()), policies);
            assert_eq!(names(selection.repositories.keys()), repositories);
        }
    }

    #[test]
    fn policies_that_do_not_choose_have_a_reason() {
        let selection = Selection::of(&manifests(), &[automation("n", &json!({}))], &ImageOverrides::new());
        let skipped = |selection: &Selection| -> Vec<_> {
            let named = selection.skipped.iter().map(|(policy, reason)| (policy.name_any(), reason.clone()));
            named.collect()
        };
        let stranded =
            SkipReason::WithoutRepository(ObjectName { namespace: "n".to_owned(), name: "none".to_owned() });
        assert_eq!(
            skipped(&selection),
            [
                ("resting".to_owned(), SkipReason::Suspended),
                ("stranded".to_owned(), stranded.clone()),
                ("settled".to_owned(), stranded.clone())
            ]
        );
        let unscanned =
            Selection::without_scans(&manifests(), &[automation("n", &json!({}))], &ImageOverrides::new());
        assert!(unscanned.policies.is_empty() && unscanned.repositories.is_empty());
        assert_eq!(skipped(&unscanned).len(), 6);
        let name = ObjectName { namespace: "n".to_owned(), name: "stranded".to_owned() };
        assert_eq!(
            stranded.without_image(&name),
            "ImagePolicy n/stranded has no image: the ImageRepository n/none, from whose tags it chooses, is not among \
             the manifests, and neither is a status.latestRef"
        );
        assert_eq!(
            names(&selection.secrets(&manifests(), RegistryLogin::User)),
            ["m/authority", "n/authority", "n/authority"]
        );
        assert_eq!(names(&selection.secrets(&manifests(), RegistryLogin::Secrets)).len(), 6);
    }
}
