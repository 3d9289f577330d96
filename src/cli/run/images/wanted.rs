//! Whose choice matters to a run, and which repositories are scanned for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tagboat_api::{ImagePolicy, ImageRef, ImageRepository, ImageUpdateAutomation};

use super::sources::Policies;
use crate::cli::inputs::{secrets_of, warn_of_repository_settings, warn_of_settings};
use crate::cli::overrides::policy_name;
use crate::cli::registry_login::RegistryLogin;
use crate::objects::ObjectName;
use crate::objects::manifests::Manifests;
use crate::reconcile::automation::request::{self, GivenImages};
use crate::reconcile::policy::request::repository_of;
use crate::reference::{ImageReference, RepositoryAddress};
use crate::update::PolicyName;

/// The policies whose choice matters, and the repositories that they choose from.
#[derive(Debug, Default)]
pub(in crate::cli::run) struct Wanted {
    /// The policies that choose.
    pub(super) policies: Policies,
    /// The policies that do not choose, and why.
    pub(super) resting: Vec<(ImagePolicy, Rest)>,
    /// The repositories of those that choose, as the manifests have them.
    pub(super) repositories: BTreeMap<ObjectName, ImageRepository>,
    /// The images that the command line gives to policies which could choose otherwise.
    pub(super) given: Vec<GivenImage>,
}

/// An image that a person gives to a policy in the place of its choice.
#[derive(Clone, Debug)]
pub(super) struct GivenImage {
    pub(super) policy: ImagePolicy,
    /// The repository that the policy names, as its manifest has it.
    pub(super) repository: ImageRepository,
    /// The image, by the name that the repository has for it.
    pub(super) image: ImageRef,
    /// Whether the policy would choose in this run.
    pub(super) is_in_place_of_choice: bool,
}

/// Why a policy does not choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It is suspended.
    Suspended,
    /// Nothing is scanned in this run.
    WithoutScans,
    /// Its repository is not among the manifests.
    WithoutRepository(ObjectName),
}

impl Rest {
    /// Why a policy has no image that neither a run that is remembered nor its manifest has one for.
    pub(super) fn without_image(&self, policy: &PolicyName) -> String {
        match self {
            Self::Suspended => format!(
                "ImagePolicy {policy} has no image: it is suspended, no run that is remembered chose one, and its \
                 manifest has no status.latestRef"
            ),
            Self::WithoutScans => format!(
                "ImagePolicy {policy} has no image: nothing is scanned, no run that is remembered chose one, and its \
                 manifest has no status.latestRef"
            ),
            Self::WithoutRepository(repository) => format!(
                "ImagePolicy {policy} has no image: the ImageRepository {repository}, from whose tags it chooses, is \
                 not among the manifests, and neither is a status.latestRef"
            ),
        }
    }
}

impl Wanted {
    /// Of the policies that an automation selects which is to be carried out: all that do not rest, to which no image
    /// is given, and whose repository is among the manifests.
    pub(in crate::cli::run) fn of(
        manifests: &Manifests,
        automations: &[ImageUpdateAutomation],
        given: &GivenImages,
    ) -> Self {
        let mut wanted = Self { given: given_to(manifests, automations, given, true), ..Self::default() };
        let selected = selected(manifests, automations, given);
        let repositories: BTreeMap<ObjectName, &ImageRepository> =
            manifests.repositories().map(|repository| (ObjectName::of(repository), repository)).collect();
        for policy in manifests.policies().filter(|policy| selected.contains(&ObjectName::of(*policy))) {
            let (name, repository) = (ObjectName::of(policy), repository_of(policy));
            match repositories.get(&repository) {
                Some(_) if policy.spec.suspend => wanted.resting.push((policy.clone(), Rest::Suspended)),
                Some(found) => {
                    wanted.policies.insert(name, Arc::new(policy.clone()));
                    wanted.repositories.insert(repository, (*found).clone());
                }
                None => wanted.resting.push((policy.clone(), Rest::WithoutRepository(repository))),
            }
        }
        wanted
    }

    /// The same where nothing is to be scanned.
    pub(in crate::cli::run) fn without_scans(
        manifests: &Manifests,
        automations: &[ImageUpdateAutomation],
        given: &GivenImages,
    ) -> Self {
        let selected = selected(manifests, automations, given);
        let policies = manifests.policies().filter(|policy| selected.contains(&ObjectName::of(*policy)));
        let resting = policies.map(|policy| (policy.clone(), Rest::WithoutScans)).collect();
        Self { resting, given: given_to(manifests, automations, given, false), ..Self::default() }
    }

    /// Says which settings are wrong at objects that this run does not carry out; it fails of those at the others.
    pub(in crate::cli::run) fn warn_of_idle_settings(&self, manifests: &Manifests) {
        let policies = manifests.policies();
        policies.filter(|one| !self.policies.contains_key(&ObjectName::of(*one))).for_each(warn_of_settings);
        let repositories = manifests.repositories();
        repositories
            .filter(|one| !self.repositories.contains_key(&ObjectName::of(*one)))
            .for_each(warn_of_repository_settings);
    }

    /// Whether there are repositories to scan.
    pub(in crate::cli::run) fn scans_anything(&self) -> bool {
        !self.repositories.is_empty()
    }

    /// The secrets that the repositories and their service accounts name, as far as somebody asks for them.
    pub(in crate::cli::run) fn secrets(
        &self,
        manifests: &Manifests,
        login: RegistryLogin,
    ) -> Vec<ObjectName> {
        let repositories = self.repositories.values();
        repositories.flat_map(|repository| secrets_of(repository, manifests, login)).collect()
    }
}

/// What is given to policies that automations select and whose repositories are among the manifests: of the others
/// nothing is ever chosen that an image of now could be compared with.
fn given_to(
    manifests: &Manifests,
    automations: &[ImageUpdateAutomation],
    given: &GivenImages,
    is_scanned: bool,
) -> Vec<GivenImage> {
    let selected = all_selected(manifests, automations, given);
    let policies = manifests.policies().filter(|policy| selected.contains(&ObjectName::of(*policy)));
    let found = policies.filter_map(|policy| {
        let image = given.get(&policy_name(policy))?.as_ref()?;
        let name = repository_of(policy);
        let repository = manifests.repositories().find(|repository| ObjectName::of(*repository) == name)?;
        let image = image_of(repository, image);
        let is_in_place_of_choice = is_scanned && !policy.spec.suspend;
        Some(GivenImage {
            policy: policy.clone(),
            repository: repository.clone(),
            image,
            is_in_place_of_choice,
        })
    });
    found.collect()
}

/// An image by the name that its repository has for it, where both mean the same.
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

/// The policies that automations select and to which no image is given.
fn selected(
    manifests: &Manifests,
    automations: &[ImageUpdateAutomation],
    given: &GivenImages,
) -> BTreeSet<ObjectName> {
    let mut names = all_selected(manifests, automations, given);
    names.retain(|name| !given.contains_key(&PolicyName::from(name)));
    names
}

/// The policies that automations select which are to be carried out.
fn all_selected(
    manifests: &Manifests,
    automations: &[ImageUpdateAutomation],
    given: &GivenImages,
) -> BTreeSet<ObjectName> {
    let open = automations.iter().filter(|automation| !automation.spec.suspend);
    // An automation whose selector cannot be understood fails later, in its own words.
    let requests =
        open.filter_map(|automation| request::of_automation(automation, manifests.policies(), given).ok());
    let mut names = BTreeSet::new();
    for request in requests {
        let selected = request.update.setters.selected().map(|(policy, _)| policy);
        names.extend(
            selected
                .map(|policy| ObjectName { namespace: policy.namespace.clone(), name: policy.name.clone() }),
        );
    }
    names
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use kube::ResourceExt;
    use serde_json::{Value, json};

    use super::*;
    use crate::objects::manifests::{Manifest, Object};

    fn whole(namespace: &str, name: &str, spec: &Value) -> Value {
        json!({"metadata": {"namespace": namespace, "name": name, "labels": {"name": name}}, "spec": spec})
    }

    fn policy(namespace: &str, name: &str, repository: &Value, more: &Value) -> Object {
        let mut policy = whole(namespace, name, &json!({"imageRepositoryRef": repository, "policy": {}}));
        for (place, members) in more.as_object().unwrap() {
            let own = policy.as_object_mut().unwrap().entry(place).or_insert(json!({}));
            own.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        }
        Object::Policy(Box::new(serde_json::from_value(policy).unwrap()))
    }

    fn repository(namespace: &str, name: &str) -> Object {
        let spec = json!({"image": "r.io/app", "interval": "1m", "secretRef": {"name": "login"},
            "certSecretRef": {"name": "authority"}});
        Object::Repository(Box::new(serde_json::from_value(whole(namespace, name, &spec)).unwrap()))
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
        let objects = objects.into_iter().map(|object| Manifest { file: PathBuf::from("-"), object });
        Manifests { objects: objects.collect(), notes: Vec::new() }
    }

    fn names<'a>(names: impl IntoIterator<Item = &'a ObjectName>) -> Vec<String> {
        names.into_iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_selected_and_could_choose_is_scanned() {
        let given = GivenImages::from([(
            PolicyName { namespace: "n".to_owned(), name: "given".to_owned() },
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
            let wanted = Wanted::of(&manifests(), &automations, &given);
            assert_eq!(names(wanted.policies.keys()), policies);
            assert_eq!(names(wanted.repositories.keys()), repositories);
        }
    }

    #[test]
    fn who_has_no_image_is_told_and_who_rests_is_known() {
        let wanted = Wanted::of(&manifests(), &[automation("n", &json!({}))], &GivenImages::new());
        let resting = |wanted: &Wanted| -> Vec<_> {
            let named = wanted.resting.iter().map(|(policy, rest)| (policy.name_any(), rest.clone()));
            named.collect()
        };
        let stranded =
            Rest::WithoutRepository(ObjectName { namespace: "n".to_owned(), name: "none".to_owned() });
        assert_eq!(
            resting(&wanted),
            [
                ("resting".to_owned(), Rest::Suspended),
                ("stranded".to_owned(), stranded.clone()),
                ("settled".to_owned(), stranded.clone())
            ]
        );
        let unscanned =
            Wanted::without_scans(&manifests(), &[automation("n", &json!({}))], &GivenImages::new());
        assert!(unscanned.policies.is_empty() && unscanned.repositories.is_empty());
        assert_eq!(resting(&unscanned).len(), 6);
        let name = PolicyName { namespace: "n".to_owned(), name: "stranded".to_owned() };
        assert_eq!(
            stranded.without_image(&name),
            "ImagePolicy n/stranded has no image: the ImageRepository n/none, from whose tags it chooses, is not among \
             the manifests, and neither is a status.latestRef"
        );
        assert_eq!(
            names(&wanted.secrets(&manifests(), RegistryLogin::User)),
            ["m/authority", "n/authority", "n/authority"]
        );
        assert_eq!(names(&wanted.secrets(&manifests(), RegistryLogin::Secrets)).len(), 6);
    }
}
