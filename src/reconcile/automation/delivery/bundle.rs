//! Divides the policies of an automation into bundles, each of which has one branch.

use std::collections::{BTreeMap, BTreeSet};

use tagboat_api::settings::TemplateLanguage;
use tagboat_api::{ObjectName, Reason};

use super::branch_name::{BranchNameError, ReferenceName, branch_name};
use crate::error::ReconcileError;
use crate::git::BranchName;
use crate::message::{BranchData, PolicyImage, Template, TemplateError};
use crate::reference::ImageReference;

/// The folder of the branches that have no name of their own.
const DEFAULT_FOLDER: &str = "tagboat";

/// The maximum number of branches of an automation.
const MAX_BRANCHES: usize = 500;

/// An automation whose policies are divided.
#[derive(Clone, Debug)]
pub struct BundleRequest<'a> {
    /// The automation.
    pub automation: &'a ObjectName,
    /// `spec.update.path`.
    pub path: Option<&'a str>,
    /// `messageTemplateValues`.
    pub values: &'a BTreeMap<String, String>,
    /// The branch that is checked out.
    pub base: &'a BranchName,
    /// The push branch: `spec.git.push.branch`, or the base.
    pub push_branch: &'a BranchName,
    /// True if it has `spec.git.push.refspec`.
    pub has_refspec: bool,
    /// The template of the branches.
    pub template: Option<&'a str>,
    /// The language of the template.
    pub language: TemplateLanguage,
    /// The selected policies that have an image.
    pub policies: Vec<SelectedPolicy<'a>>,
}

/// A selected policy with an image.
#[derive(Clone, Debug)]
pub struct SelectedPolicy<'a> {
    /// The policy and its image.
    pub image: PolicyImage,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

/// The bundles of an automation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundles {
    /// The policies of each branch.
    pub branches: BTreeMap<BranchName, BTreeSet<ObjectName>>,
    /// Policies that have no branch, because the template renders to no usable name for them.
    pub invalid: Vec<InvalidBranch>,
}

/// A policy without a usable branch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the annotation tagboat.dev/push-branch gives ImagePolicy {policy} no branch")]
pub struct InvalidBranch {
    /// The policy.
    pub policy: ObjectName,
    /// The cause.
    #[source]
    pub cause: InvalidBranchCause,
}

/// The cause of a policy without a usable branch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBranchCause {
    /// The template fails with the policy's data.
    #[error("{detail}")]
    Template {
        /// The error of the template.
        detail: String,
    },
    /// The text is no name of a branch.
    #[error(transparent)]
    Name(BranchNameError),
    /// Git cannot have both branches: one is a folder of the other.
    #[error("the branch {other} is in the way of {branch}: one cannot be a folder of the other")]
    InTheWay {
        /// The branch of the policy.
        branch: BranchName,
        /// The branch in its way.
        other: BranchName,
    },
    /// Another automation makes the branch on another base.
    #[error(
        "automation {automation} makes the branch {branch} on {base}, and a branch has one base: set another name here or there"
    )]
    OtherBase {
        /// The branch of the policy.
        branch: BranchName,
        /// The automation.
        automation: ObjectName,
        /// Its base.
        base: BranchName,
    },
    /// Another automation makes the branch with other push options.
    #[error(
        "automation {automation} makes the branch {branch} with other push options, and a branch is pushed with the options of all \
         of its automations: set the same spec.git.push.options here and there, or another name here or there"
    )]
    OtherOptions {
        /// The branch of the policy.
        branch: BranchName,
        /// The automation.
        automation: ObjectName,
    },
    /// Another automation pushes its commits to the branch.
    #[error(
        "automation {automation} has delivery push and pushes its commits to the branch {branch}, which would be made anew without \
         them: set another name here or there"
    )]
    Pushed {
        /// The branch of the policy.
        branch: BranchName,
        /// The automation.
        automation: ObjectName,
    },
    /// There are more branches than an automation may have.
    #[error(
        "an automation has at most {MAX_BRANCHES} branches, and {branch} is beyond them by name: let policies share branches, or \
         divide them by spec.policySelector"
    )]
    TooMany {
        /// The branch of the policy.
        branch: BranchName,
    },
}

/// The error of an automation whose policies have no bundles.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// The text is no template.
    #[error("the annotation tagboat.dev/push-branch is no template: {detail}")]
    Template {
        /// The error of the template.
        detail: String,
    },
    /// A rendered branch is the base.
    #[error(
        "the annotation tagboat.dev/push-branch renders to {base} for ImagePolicy {policy}, which is the branch that is checked \
         out: pull requests need a branch of their own"
    )]
    IsBase {
        /// The policy.
        policy: ObjectName,
        /// The base.
        base: BranchName,
    },
    /// The push branch, which no template overrides, is no name of a branch.
    #[error("spec.git.push.branch is {0}")]
    PushBranch(ReferenceName),
    /// A refspec with several branches as its source.
    #[error(
        "spec.git.push.refspec pushes one branch, and the annotation tagboat.dev/push-branch renders to {branches} different \
         ones: remove one of the two"
    )]
    Refspec {
        /// The number of branches.
        branches: usize,
    },
}

impl ReconcileError for BundleError {
    fn reason(&self) -> Reason {
        match self {
            Self::Template { .. } | Self::IsBase { .. } => Reason::InvalidSettings,
            Self::PushBranch(_) | Self::Refspec { .. } => Reason::InvalidSourceConfiguration,
        }
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

/// Divides the policies of an automation into bundles, by their rendered branch.
///
/// Without a template, all policies share the push branch, or a default one if that is the base.
///
/// # Errors
///
/// If the template is none, renders to the base, or to several branches where only one can be pushed; or if there is no
/// template, and the push branch has the full name of a reference.
pub fn bundles(request: &BundleRequest<'_>) -> Result<Bundles, BundleError> {
    let Some(template) = request.template else {
        return Ok(Bundles { branches: of_one_branch(request)?, invalid: Vec::new() });
    };
    let template = Template::compile(template, request.language)
        .map_err(|error| BundleError::Template { detail: error.detail_of_annotation() })?;
    let mut bundles = Bundles::default();
    for policy in &request.policies {
        let name = &policy.image.policy;
        match rendered(request, &template, policy) {
            Ok(branch) if branch == *request.base => {
                return Err(BundleError::IsBase { policy: name.clone(), base: branch });
            }
            Ok(branch) => {
                bundles.branches.entry(branch).or_default().insert(name.clone());
            }
            Err(cause) => bundles.invalid.push(InvalidBranch { policy: name.clone(), cause }),
        }
    }
    bundles.drop_folders(request.base);
    bundles.drop_many();
    if request.has_refspec && bundles.branches.len() > 1 {
        return Err(BundleError::Refspec { branches: bundles.branches.len() });
    }
    Ok(bundles)
}

/// Returns the branch of any policies, if its name depends on none of them.
///
/// Those of the request do not matter.
pub fn only_branch(request: &BundleRequest<'_>) -> Option<BranchName> {
    if let Some(template) = request.template
        && Template::compile(template, request.language).ok()?.mentions_policy()
    {
        return None;
    }
    let image = PolicyImage {
        policy: request.automation.clone(),
        image: ImageReference::parse("image:tag").expect("it is a reference"),
    };
    let labels = BTreeMap::new();
    let policies = vec![SelectedPolicy { image, labels: &labels }];
    let of_any = bundles(&BundleRequest { policies, ..request.clone() });
    of_any.ok()?.branches.into_keys().next()
}

fn of_one_branch(
    request: &BundleRequest<'_>,
) -> Result<BTreeMap<BranchName, BTreeSet<ObjectName>>, BundleError> {
    let branch = if request.push_branch == request.base {
        default_branch(request.automation, request.path)
    } else if let Some(name) = ReferenceName::of(request.push_branch.as_str()) {
        return Err(BundleError::PushBranch(name));
    } else {
        request.push_branch.clone()
    };
    if request.policies.is_empty() {
        return Ok(BTreeMap::new());
    }
    let policies = request.policies.iter().map(|policy| policy.image.policy.clone()).collect();
    Ok(BTreeMap::from([(branch, policies)]))
}

/// Returns the branch `tagboat/NAMESPACE-NAME-PATH`.
fn default_branch(automation: &ObjectName, path: Option<&str>) -> BranchName {
    let parts = path.unwrap_or_default().split('/').filter(|part| !matches!(*part, "" | "."));
    let names = [automation.namespace.as_str(), &automation.name].into_iter().chain(parts);
    let name = names.filter(|name| !name.is_empty()).collect::<Vec<_>>().join("-");
    branch_name(&format!("{DEFAULT_FOLDER}/{name}"))
        // The path is foreign text, and may be too long for a name.
        .or_else(|_| branch_name(&format!("{DEFAULT_FOLDER}/{}-{}", automation.namespace, automation.name)))
        .unwrap_or_else(|_| DEFAULT_FOLDER.parse().expect("the folder is a name"))
}

fn rendered(
    request: &BundleRequest<'_>,
    template: &Template,
    policy: &SelectedPolicy<'_>,
) -> Result<BranchName, InvalidBranchCause> {
    let data = BranchData {
        automation: request.automation,
        values: request.values,
        base: request.base.as_str(),
        labels: policy.labels,
        image: &policy.image,
    };
    let failed = |error: TemplateError| InvalidBranchCause::Template { detail: error.detail_of_annotation() };
    let text = template.render_branch(&data).map_err(failed)?;
    branch_name(&text).map_err(InvalidBranchCause::Name)
}

impl Bundles {
    /// Moves the branches beyond the maximum number to the invalid ones, the last by name.
    fn drop_many(&mut self) {
        while self.branches.len() > MAX_BRANCHES
            && let Some((branch, policies)) = self.branches.pop_last()
        {
            let cause = || InvalidBranchCause::TooMany { branch: branch.clone() };
            self.invalid.extend(policies.into_iter().map(|policy| InvalidBranch { policy, cause: cause() }));
        }
    }

    /// Moves branches that git cannot have beside another one to the invalid ones.
    fn drop_folders(&mut self, base: &BranchName) {
        let in_the_way = |branch: &BranchName| {
            let folders = branch.as_str().match_indices('/').map(|(at, _)| &branch.as_str()[..at]);
            let mut folders = folders.filter_map(|folder| folder.parse::<BranchName>().ok());
            let is_below = |folder: &BranchName| folder == base || self.branches.contains_key(folder);
            let above = folders.find(is_below);
            let is_above_base =
                base.as_str().strip_prefix(branch.as_str()).is_some_and(|rest| rest.starts_with('/'));
            above.or_else(|| is_above_base.then(|| base.clone()))
        };
        let found: Vec<(BranchName, BranchName)> =
            self.branches.keys().filter_map(|branch| Some((branch.clone(), in_the_way(branch)?))).collect();
        for (branch, other) in found {
            for policy in self.branches.remove(&branch).unwrap_or_default() {
                let cause = InvalidBranchCause::InTheWay { branch: branch.clone(), other: other.clone() };
                self.invalid.push(InvalidBranch { policy, cause });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::error::chain;

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "apps".to_owned(), name: name.to_owned() }
    }

    fn branch(name: &str) -> BranchName {
        name.parse().unwrap()
    }

    /// Divides three policies, of which `db` has no label.
    fn divide(
        template: Option<&str>,
        change: &dyn Fn(&mut BundleRequest<'_>),
    ) -> Result<Bundles, BundleError> {
        let (automation, values) = (name("fleet"), BTreeMap::from([("env".to_owned(), "prod".to_owned())]));
        let (base, none) = (branch("main"), BTreeMap::new());
        let labels = |team: &str| BTreeMap::from([("team".to_owned(), team.to_owned())]);
        let (shop, core) = (labels("shop"), labels("core"));
        let policies = [("web", "1.2.3", &shop), ("api", "1.2.3", &core), ("db", "15@x:y", &none)];
        let policies = policies.into_iter().map(|(policy, tag, labels)| {
            let digest = format!("@sha256:{}", "0a".repeat(32));
            let image = format!("ghcr.io/acme/{policy}:{}", tag.replace("@x:y", &digest));
            let image = PolicyImage { policy: name(policy), image: ImageReference::parse(&image).unwrap() };
            SelectedPolicy { image, labels }
        });
        let mut request = BundleRequest {
            automation: &automation,
            path: Some("./clusters/prod/"),
            values: &values,
            base: &base,
            push_branch: &base,
            has_refspec: false,
            template,
            language: TemplateLanguage::Go,
            policies: policies.collect(),
        };
        change(&mut request);
        bundles(&request)
    }

    fn shown(bundles: &Bundles) -> Vec<String> {
        let names = |policies: &BTreeSet<ObjectName>| {
            policies.iter().map(|policy| policy.name.as_str()).collect::<Vec<_>>().join(" ")
        };
        bundles.branches.iter().map(|(branch, policies)| format!("{branch}: {}", names(policies))).collect()
    }

    #[test]
    fn policies_with_the_same_rendered_name_share_a_branch() {
        for (template, expected) in [
            (None, vec!["tagboat/apps-fleet-clusters-prod: api db web"]),
            (Some("tagboat/all"), vec!["tagboat/all: api db web"]),
            (
                Some("tagboat/{{ .Policy.Name }}"),
                vec!["tagboat/api: api", "tagboat/db: db", "tagboat/web: web"],
            ),
            (
                Some("{{ .Base }}-{{ .Values.env }}/{{ .Image.Tag }}\n"),
                vec!["main-prod/1.2.3: api web", "main-prod/15: db"],
            ),
            (
                Some("x/{{ .Policy.Labels.team | default \"none\" }}"),
                vec!["x/core: api", "x/none: db", "x/shop: web"],
            ),
            (
                Some("{{ .AutomationObject }}/{{ .Policy.Namespace }}/{{ .Image.Repository }}"),
                vec![
                    "apps/fleet/apps/acme/api: api",
                    "apps/fleet/apps/acme/db: db",
                    "apps/fleet/apps/acme/web: web",
                ],
            ),
        ] {
            let bundles = divide(template, &|_| {}).unwrap();
            assert_eq!(shown(&bundles), expected, "{template:?}");
            assert!(bundles.invalid.is_empty(), "{bundles:?}");
        }
        let digests = divide(Some("x/{{ .Image.Digest | trunc 9 }}"), &|_| {}).unwrap();
        assert!(digests.branches.contains_key(&branch("x/sha256-0a")), "{digests:?}");
        let handlebars = divide(Some("x/{{Policy.Name}}-{{Image.Tag}}"), &|request| {
            request.language = TemplateLanguage::Handlebars;
            request.policies.truncate(1);
        });
        assert_eq!(shown(&handlebars.unwrap()), ["x/web-1.2.3: web"]);
    }

    /// Nothing was known of the branches of an automation whose policies could not be selected.
    #[test]
    fn a_name_that_depends_on_no_policy_is_that_of_the_only_branch() {
        use TemplateLanguage::{Go, Handlebars};
        for (language, template, expected) in [
            (Go, None, Some("tagboat/apps-fleet-clusters-prod")),
            (Go, Some("images"), Some("images")),
            (Go, Some("{{ .Base }}-{{ .Values.env }}/{{ .AutomationObject.Name }}"), Some("main-prod/fleet")),
            (Go, Some("{{ with .Values }}{{ .env }}{{ end }}"), Some("prod")),
            (Go, Some("{{ .Policy.Name }}"), None),
            (Go, Some("{{ .Image.Tag }}"), None),
            (Go, Some("{{ with .Policy.Labels.team }}x{{ else }}y{{ end }}"), None),
            (Go, Some("{{ if false }}{{ $.Policy.Name }}{{ end }}x"), None),
            (Go, Some("{{ define \"x\" }}{{ .Policy.Name }}{{ end }}{{ template \"x\" . }}"), None),
            (Go, Some("{{ . | toJson | sha256sum }}"), None),
            (Go, Some("{{ range $_, $part := list . }}{{ $part.Policy.Name }}{{ end }}"), None),
            // It is no name, is in the way of the base, or is no template.
            (Go, Some("{{ .Values.none }}"), None),
            (Go, Some("images/"), None),
            (Go, Some("main"), None),
            (Go, Some("main/images"), None),
            (Go, Some("{{ .Nothing }}"), None),
            (Go, Some("{{"), None),
            (Handlebars, Some("images-1.0"), Some("images-1.0")),
            (Handlebars, Some("{{Base}}-{{Values.env}}"), Some("main-prod")),
            (Handlebars, Some("{{Policy.Name}}"), None),
            (Handlebars, Some("{{#with .}}{{#with Base}}x{{/with}}{{/with}}"), None),
            (Handlebars, Some("{{#each this}}x{{/each}}"), None),
        ] {
            let found = Cell::new(None);
            let _ = divide(template, &|request| {
                request.language = language;
                found.set(only_branch(request));
            });
            assert_eq!(found.take(), expected.map(branch), "{template:?}");
        }
    }

    /// The pull request was opened, and never found again.
    #[test]
    fn a_push_branch_with_the_full_name_of_a_reference_is_refused() {
        for (name, expected) in [
            (
                "refs/heads/upd",
                "spec.git.push.branch is \"refs/heads/upd\", and a branch has a name without refs/heads/: leave refs/heads/ out",
            ),
            (
                "HEAD",
                "spec.git.push.branch is HEAD, by which git means what is checked out: give the branch another name",
            ),
        ] {
            let change = |request: &mut BundleRequest<'_>| {
                request.push_branch = Box::leak(Box::new(branch(name)));
                request.policies.clear();
            };
            assert_eq!(chain(&divide(None, &change).unwrap_err()), expected);
            assert!(divide(Some("tagboat/all"), &change).is_ok(), "the template overrides it");
        }
    }

    #[test]
    fn without_a_template_the_push_branch_is_used_unless_it_is_the_base() {
        let (auto, base) = (branch("auto"), branch("main"));
        for (push, path, expected) in [
            (&auto, Some("apps"), vec!["auto: api db web"]),
            (&base, None, vec!["tagboat/apps-fleet: api db web"]),
            (&base, Some("."), vec!["tagboat/apps-fleet: api db web"]),
            (&base, Some("a b/c:d"), vec!["tagboat/apps-fleet-a-b-c-d: api db web"]),
        ] {
            let bundles = divide(None, &|request| {
                // The request borrows names that live as long as the test.
                request.push_branch = Box::leak(Box::new(push.clone()));
                request.path = path;
            });
            assert_eq!(shown(&bundles.unwrap()), expected, "{push} {path:?}");
        }
        let long = "x/".repeat(300);
        assert_eq!(default_branch(&name("fleet"), Some(&long)).as_str(), "tagboat/apps-fleet");
        assert_eq!(divide(None, &|request| request.policies.clear()).unwrap(), Bundles::default());
    }

    #[test]
    fn a_branch_that_is_the_base_and_a_text_that_is_no_template_stall() {
        let several = |request: &mut BundleRequest<'_>| request.has_refspec = true;
        for (template, refspec, reason, message) in [
            (
                "{{ .Base }}",
                false,
                Reason::InvalidSettings,
                "the annotation tagboat.dev/push-branch renders to main for ImagePolicy apps/web, which is the branch that is \
                 checked out: pull requests need a branch of their own",
            ),
            (
                "x/{{ .Policy",
                false,
                Reason::InvalidSettings,
                "the annotation tagboat.dev/push-branch is no template: template:1: unclosed action",
            ),
            (
                "x/{{ .Policy.Name }}",
                true,
                Reason::InvalidSourceConfiguration,
                "spec.git.push.refspec pushes one branch, and the annotation tagboat.dev/push-branch renders to 3 different \
                 ones: remove one of the two",
            ),
        ] {
            let error = divide(Some(template), &|request| {
                if refspec {
                    several(request);
                }
            })
            .unwrap_err();
            assert_eq!(chain(&error), message);
            assert_eq!((error.reason(), error.is_retryable()), (reason, false));
        }
        assert!(divide(Some("x"), &several).is_ok() && divide(None, &several).is_ok());
    }

    #[test]
    fn an_invalid_name_leaves_the_other_policies() {
        for (template, branches, invalid) in [
            (
                "x/{{ .Policy.Labels.team }}",
                vec!["x/core: api", "x/shop: web"],
                vec![
                    "the annotation tagboat.dev/push-branch gives ImagePolicy apps/db no branch: the template renders to \
                     \"x/<no value>\": a value in it does not exist, such as a label that the policy lacks",
                ],
            ),
            (
                "{{ if eq .Policy.Name \"web\" }}x{{ else }}x/{{ .Policy.Name }}{{ end }}",
                vec!["x: web"],
                vec![
                    "the annotation tagboat.dev/push-branch gives ImagePolicy apps/api no branch: the branch x is in the way of \
                     x/api: one cannot be a folder of the other",
                    "the annotation tagboat.dev/push-branch gives ImagePolicy apps/db no branch: the branch x is in the way of \
                     x/db: one cannot be a folder of the other",
                ],
            ),
        ] {
            let bundles = divide(Some(template), &|_| {}).unwrap();
            let sentences: Vec<String> = bundles.invalid.iter().map(|error| chain(error)).collect();
            assert_eq!(shown(&bundles), branches, "{template}");
            assert_eq!(sentences, invalid, "{template}");
        }
        let below_base = divide(Some("main/x"), &|_| {}).unwrap();
        assert!(below_base.branches.is_empty() && below_base.invalid.len() == 3, "{below_base:?}");
        let failing = divide(Some("x/{{ .Nope }}"), &|request| request.policies.truncate(1)).unwrap();
        assert!(chain(&failing.invalid[0]).contains("can't evaluate field Nope"), "{failing:?}");
        // A template has few steps for each policy.
        let endless =
            divide(Some("{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"), &|_| {});
        assert_eq!(endless.unwrap().invalid.len(), 3);
    }

    #[test]
    fn branches_beyond_the_maximum_are_invalid_and_the_others_stay() {
        let bundles = divide(Some("x/{{ .Policy.Name }}"), &|request| {
            let first = request.policies[0].clone();
            request.policies.clear();
            for number in 0..MAX_BRANCHES + 2 {
                let image = PolicyImage { policy: name(&format!("p{number:04}")), ..first.image.clone() };
                request.policies.push(SelectedPolicy { image, labels: first.labels });
            }
        })
        .unwrap();
        assert_eq!((bundles.branches.len(), bundles.invalid.len()), (MAX_BRANCHES, 2));
        assert_eq!(
            chain(&bundles.invalid[0]),
            "the annotation tagboat.dev/push-branch gives ImagePolicy apps/p0501 no branch: an automation has at most 500 \
             branches, and x/p0501 is beyond them by name: let policies share branches, or divide them by spec.policySelector"
        );
    }
}
