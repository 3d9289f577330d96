//! Checks the annotations of deliveries: rendered branches, and texts of pull requests.
//!
//! Images are unknown here, so every policy has a sample image. Objects that patches may change are not checked.

use std::collections::BTreeMap;

use kube::core::SelectorExt;
use serde_json::json;
use tagboat_api::settings::{AutomationSettings, Delivery, PREFIX, SettingText};
use tagboat_api::substitution::contains_placeholder;
use tagboat_api::{GitRepository, ImageUpdateAutomation, Kind, ObjectName, selector};

use super::automation::{has_placeholder, texts};
use super::finding::{Finding, Findings, Location, Rule};
use super::forge;
use super::object::Object;
use super::template::near_preset;
use crate::error::chain;
use crate::git::BranchName;
use crate::git::outcome::Target;
use crate::message::{MessageData, PolicyImage, PullRequestData, Template, TemplateError, TemplateErrorKind};
use crate::reconcile::automation::branch_plan::BranchSourceError;
use crate::reconcile::automation::delivery::{
    BundleError, BundleRequest, Bundles, InvalidBranchCause, SelectedPolicy, base_of, bundles,
};
use crate::reconcile::automation::source::SourceReference;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::repository::request::ObjectIdentity;
use crate::reference::ImageReference;
use crate::yaml::Node;

/// The image of every policy, with a tag and a digest for templates.
const SAMPLE_IMAGE: &str =
    "ghcr.io/acme/app:1.2.3@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

/// The labels of the sample policy.
static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// The maximum number of policies for which a template is rendered.
const MAX_POLICIES: usize = 200;

/// An object that is whole in its file.
#[derive(Clone, Copy)]
pub(super) struct Whole<'a> {
    /// The file.
    pub(super) file: &'a str,
    /// The object.
    pub(super) object: &'a Object<'a>,
}

/// A branch of a GitRepository, which is named by its namespace and name.
type BranchOf<'a> = (&'a (Option<String>, String), &'a BranchName);

/// A branch to which an automation with delivery `push` pushes its commits.
struct Pushed<'a> {
    object: &'a Object<'a>,
    repository: (Option<String>, String),
    branch: BranchName,
}

/// An automation whose branches are known.
struct Delivered<'a> {
    whole: Whole<'a>,
    settings: AutomationSettings,
    repository: (Option<String>, String),
    target: Target,
    base: Option<BranchName>,
    branches: Vec<BranchName>,
}

/// Checks all objects together: automations need their GitRepository and their policies.
pub(super) fn check(objects: &[Whole<'_>], found: &mut Vec<Finding>) {
    let mut delivered = Vec::new();
    for whole in objects.iter().filter(|whole| whole.object.kind == Kind::Automation) {
        let annotations = whole.object.own_annotations();
        // Invalid values are findings of their own.
        let Ok(settings) = AutomationSettings::from_annotations(&annotations) else { continue };
        forge::check(*whole, &settings, objects, found);
        let mut findings = Findings::new(whole.file, found);
        check_texts(whole.object, &settings, &mut findings);
        delivered.extend(check_branches(*whole, settings, objects, &mut findings));
    }
    check_collisions(&delivered, &pushed(objects), found);
}

/// Returns the location of the value of an annotation.
pub(super) fn location(object: &Object<'_>, name: &str) -> Location {
    let field = object.annotations().and_then(|fields| fields.field(&format!("{PREFIX}{name}")));
    field.map_or_else(|| object.location(), |field| Location::of(field.value))
}

/// Renders the templates of title and body on sample data.
fn check_texts(object: &Object<'_>, settings: &AutomationSettings, findings: &mut Findings<'_>) {
    let of = &settings.pull_request;
    for (name, text) in [("pull-request-title", &of.title), ("pull-request-body", &of.body)] {
        if let Some(preset) = text.text().and_then(near_preset) {
            let sentence = format!(
                "annotation {PREFIX}{name} names no preset and is itself the text; did you mean `{preset}`, without anything \
                 else?"
            );
            findings.add(location(object, name), Rule::UnknownPreset, sentence);
        }
        let Some(error) = text.text().and_then(|text| text_error(object, text, settings)) else { continue };
        let rule = match error.kind() {
            TemplateErrorKind::UnknownPreset { .. } => Rule::UnknownPreset,
            _ => Rule::TemplateError,
        };
        findings.add(location(object, name), rule, error.detail_of_annotation());
    }
}

/// Returns the error of a template that fails on each kind of sample data.
fn text_error(object: &Object<'_>, text: &str, settings: &AutomationSettings) -> Option<TemplateError> {
    let template = match Template::compile(text, settings.template_language) {
        Ok(template) => template,
        Err(error) => return Some(error),
    };
    let render = |data: MessageData| {
        let data = data.of_automation(&name_of(object)).with_values(values(object));
        let data = PullRequestData { message: &data, branch: "tagboat/app", base: "main" };
        template.render_pull_request(&data, &|| false)
    };
    render(MessageData::sample()).err()?;
    render(MessageData::plain_sample()).err()
}

pub(super) fn name_of(object: &Object<'_>) -> ObjectName {
    let namespace = object.namespace().unwrap_or("default").to_owned();
    ObjectName { namespace, name: object.name().to_owned() }
}

/// Returns `messageTemplateValues`.
fn values(object: &Object<'_>) -> BTreeMap<String, String> {
    text_map(object.node.at(&["spec", "git", "commit", "messageTemplateValues"]))
}

fn text_map(node: Option<&Node>) -> BTreeMap<String, String> {
    let fields = node.map(Node::fields).unwrap_or_default();
    let text = |node: &Node| node.text().map(str::to_owned);
    fields.iter().filter_map(|field| Some((field.name.to_owned(), text(field.value)?))).collect()
}

/// Renders the branches of an automation, unless commits go to the push branch.
fn check_branches<'a>(
    whole: Whole<'a>,
    settings: AutomationSettings,
    objects: &[Whole<'a>],
    findings: &mut Findings<'_>,
) -> Option<Delivered<'a>> {
    let object = whole.object;
    let has_template = settings.push_branch.text().is_some();
    if settings.delivery == Delivery::Push && !has_template {
        return None;
    }
    let repository = repository_of(object)?;
    let git_repository = find_repository(&repository, objects);
    let target = target(object, git_repository.map(|whole| whole.object))?;
    let has_base = has_base(object, git_repository);
    let base = match base_of(&target) {
        Ok(base) => base,
        Err(error) => {
            if has_base && settings.delivery != Delivery::Push {
                findings.add(location(object, "delivery"), Rule::InvalidBranch, chain(&error));
            }
            return None;
        }
    };
    if let Some(refspec) = target.refspec.as_ref().filter(|_| settings.delivery != Delivery::Push) {
        let error = BranchSourceError::Refspec { refspec: refspec.to_string() };
        findings.add(location(object, "delivery"), Rule::InvalidBranch, chain(&error));
        return None;
    }
    let rendered = render_branches(object, &settings, (&base, &target), objects);
    let (branches, errors) = match rendered {
        Ok(bundles) => sentences(bundles),
        Err(BundleError::Template { detail }) => (Vec::new(), vec![(Rule::TemplateError, detail)]),
        // Without its GitRepository, the base is unknown.
        Err(BundleError::IsBase { .. }) if !has_base => (Vec::new(), Vec::new()),
        // A finding of the field.
        Err(BundleError::PushBranch(_)) => (Vec::new(), Vec::new()),
        Err(error) => (Vec::new(), vec![(Rule::InvalidBranch, chain(&error))]),
    };
    for (rule, sentence) in errors {
        findings.add(location(object, if has_template { "push-branch" } else { "delivery" }), rule, sentence);
    }
    let base = Some(base).filter(|_| has_base);
    let delivered = Delivered { whole, settings, repository, target, base, branches };
    (delivered.settings.delivery != Delivery::Push).then_some(delivered)
}

/// Returns true if the branch that is checked out is known.
fn has_base(object: &Object<'_>, repository: Option<Whole<'_>>) -> bool {
    object.node.at(&["spec", "git", "checkout"]).is_some() || repository.is_some()
}

/// Returns the branches to which automations with delivery `push` push their commits.
fn pushed<'a>(objects: &[Whole<'a>]) -> Vec<Pushed<'a>> {
    let branches_of = |whole: &Whole<'a>| {
        let object = whole.object;
        let settings = AutomationSettings::from_annotations(&object.own_annotations()).ok()?;
        let is_push = settings.delivery == Delivery::Push && !is_suspended(object);
        let repository = repository_of(object).filter(|_| is_push)?;
        let git_repository = find_repository(&repository, objects);
        let is_known =
            object.node.at(&["spec", "git", "push", "branch"]).is_some() || has_base(object, git_repository);
        let target = target(object, git_repository.map(|whole| whole.object)).filter(|_| is_known)?;
        let pushed = target.pushed_branches();
        Some(
            pushed
                .map(|branch| Pushed { object, repository: repository.clone(), branch })
                .collect::<Vec<_>>(),
        )
    };
    let automations = objects.iter().filter(|whole| whole.object.kind == Kind::Automation);
    automations.filter_map(branches_of).flatten().collect()
}

fn is_suspended(object: &Object<'_>) -> bool {
    object.node.text_at(&["spec", "suspend"]) == Some("true")
}

/// Returns the branches, and the first error of each rule.
fn sentences(bundles: Bundles) -> (Vec<BranchName>, Vec<(Rule, String)>) {
    let mut errors: BTreeMap<Rule, (String, usize)> = BTreeMap::new();
    for invalid in &bundles.invalid {
        let (rule, sentence) = match &invalid.cause {
            InvalidBranchCause::Template { detail } => (Rule::TemplateError, detail.clone()),
            _ => (Rule::InvalidBranch, chain(invalid)),
        };
        errors.entry(rule).and_modify(|(_, more)| *more += 1).or_insert((sentence, 0));
    }
    let sentence = |(rule, (sentence, more)): (Rule, (String, usize))| match (rule, more) {
        (Rule::TemplateError, _) | (_, 0) => (rule, sentence),
        (_, 1) => (rule, format!("{sentence}; and 1 more policy")),
        _ => (rule, format!("{sentence}; and {more} more policies")),
    };
    (bundles.branches.into_keys().collect(), errors.into_iter().map(sentence).collect())
}

/// Returns the namespace and name of an automation's GitRepository.
pub(super) fn repository_of(object: &Object<'_>) -> Option<(Option<String>, String)> {
    let source = object.node.at(&["spec", "sourceRef"])?;
    let namespace = source.text_at(&["namespace"]).or_else(|| object.namespace()).map(str::to_owned);
    Some((namespace, source.text_at(&["name"])?.to_owned()))
}

/// Makes the target of an automation; invalid fields are findings of their own.
fn target(object: &Object<'_>, repository: Option<&Object<'_>>) -> Option<Target> {
    let git = object.node.at(&["spec", "git"])?;
    let [checkout, push] = ["checkout", "push"].map(|name| git.at(&[name]).map(texts).unwrap_or_default());
    let reference = match repository {
        Some(repository) => repository.node.at(&["spec", "ref"]).map(texts).unwrap_or_default(),
        None => json!({"branch": "main"}),
    };
    if [&checkout, &push, &reference].iter().any(|part| has_placeholder(part)) {
        return None;
    }
    // Branches of its own need a base, and no push branch.
    let metadata =
        json!({"name": "lint", "namespace": "lint", "annotations": {"tagboat.dev/delivery": "branch"}});
    let commit = json!({"author": {"email": "lint@example.com"}});
    let automation: ImageUpdateAutomation = serde_json::from_value(json!({
        "metadata": metadata,
        "spec": {
            "interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "lint"},
            "git": {"checkout": checkout, "push": push, "commit": commit},
        },
    }))
    .ok()?;
    let spec = json!({"url": "https://example.com/r.git", "interval": "1m", "ref": reference});
    let metadata = json!({"name": "lint", "namespace": "lint"});
    let repository: GitRepository =
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).ok()?;
    let reference = SourceReference::of(&automation, CrossNamespace::Allowed).ok()?;
    reference.configure(Some(&repository), ObjectIdentity::On).ok().map(|found| found.target)
}

/// Renders the branches of the policies among the files, or of a sample policy.
fn render_branches(
    object: &Object<'_>,
    settings: &AutomationSettings,
    (base, target): (&BranchName, &Target),
    objects: &[Whole<'_>],
) -> Result<Bundles, BundleError> {
    let image = ImageReference::parse(SAMPLE_IMAGE).expect("the sample is an image");
    let policies: Vec<(ObjectName, BTreeMap<String, String>)> = selected(object, objects);
    let selected = policies.iter().map(|(policy, labels)| {
        let image = PolicyImage { policy: policy.clone(), image: image.clone() };
        SelectedPolicy { image, labels }
    });
    let request = BundleRequest {
        automation: &name_of(object),
        path: object.node.text_at(&["spec", "update", "path"]),
        values: &values(object),
        base,
        push_branch: &target.push,
        has_refspec: target.refspec.is_some(),
        template: settings.push_branch.text(),
        language: settings.template_language,
        policies: selected.collect(),
    };
    let mut bundles = bundles(&request)?;
    if policies.is_empty() && settings.push_branch.text().is_some() {
        bundles = of_sample_policy(&request, image, bundles)?;
    }
    Ok(bundles)
}

/// Renders the branch of a policy that stands for those in other files.
///
/// Its labels are unknown, so a label that it lacks is no mistake.
fn of_sample_policy(
    request: &BundleRequest<'_>,
    image: ImageReference,
    none: Bundles,
) -> Result<Bundles, BundleError> {
    if request.template.is_some_and(|template| template.contains("Labels")) {
        return Ok(none);
    }
    let policy = ObjectName { namespace: request.automation.namespace.clone(), name: "app".to_owned() };
    let policies = vec![SelectedPolicy { image: PolicyImage { policy, image }, labels: &NO_LABELS }];
    bundles(&BundleRequest { policies, ..*request })
}

/// Returns the policies that an automation selects among the files, with their labels.
fn selected(object: &Object<'_>, objects: &[Whole<'_>]) -> Vec<(ObjectName, BTreeMap<String, String>)> {
    let selector = object.node.at(&["spec", "policySelector"]).map(texts).unwrap_or_default();
    if has_placeholder(&selector) {
        return Vec::new();
    }
    let selector = serde_json::from_value(selector).ok().map(|selector| selector::parse(&selector));
    // A selector that cannot be parsed is a finding of its own.
    let selector = match selector {
        Some(Err(_)) => return Vec::new(),
        Some(Ok(selector)) => Some(selector),
        None => None,
    };
    let of_policy = |whole: &Whole<'_>| {
        let policy = whole.object;
        let labels = text_map(policy.node.at(&["metadata", "labels"]));
        let is_known = !labels.values().any(|label| contains_placeholder(label))
            && !policy.name().is_empty()
            && !contains_placeholder(policy.name());
        let is_selected = selector.as_ref().is_none_or(|selector| selector.matches(&labels));
        (is_known && is_selected).then(|| (name_of(policy), labels))
    };
    objects
        .iter()
        .filter(|whole| {
            whole.object.kind == Kind::Policy && may_be_same(whole.object.namespace(), object.namespace())
        })
        .filter_map(of_policy)
        .take(MAX_POLICIES)
        .collect()
}

/// Returns true if two namespaces are the same, or one is filled in later.
fn may_be_same(one: Option<&str>, other: Option<&str>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one == other)
}

/// Finds the GitRepository of a reference, if exactly one of the files can be it.
pub(super) fn find_repository<'a>(
    (namespace, name): &(Option<String>, String),
    objects: &[Whole<'a>],
) -> Option<Whole<'a>> {
    let mut found = objects.iter().filter(|whole| {
        let object = whole.object;
        object.kind == Kind::GitRepository
            && object.name() == name
            && may_be_same(object.namespace(), namespace.as_deref())
    });
    let first = found.next()?;
    found.next().is_none().then_some(*first)
}

/// Reports branches that automations render alike and cannot share.
fn check_collisions(delivered: &[Delivered<'_>], pushed: &[Pushed<'_>], found: &mut Vec<Finding>) {
    // Automations whose base is unknown are compared with each other: they have that of their GitRepository.
    // Those of different namespaces share no branch, because their runs are separate.
    let mut first: BTreeMap<(Option<&str>, BranchOf<'_>, bool), &Delivered<'_>> = BTreeMap::new();
    for automation in delivered.iter().filter(|automation| !is_suspended(automation.whole.object)) {
        let is_known = !contains_substitution(&automation.settings.push_branch);
        for branch in automation.branches.iter().filter(|_| is_known) {
            let of_branch = (&automation.repository, branch);
            let pushed = pushed.iter().find(|one| (&one.repository, &one.branch) == of_branch);
            let place = (automation.whole.object.namespace(), of_branch, automation.base.is_some());
            let other = *first.entry(place).or_insert(automation);
            let sentence = match pushed {
                Some(Pushed { object, .. }) => Some(format!(
                    "the branch {branch} would be made anew here without the commits that {} pushes to it: set another name here or \
                     there",
                    object.title()
                )),
                None => collision(branch, automation, other),
            };
            let Some(sentence) = sentence else { continue };
            let object = automation.whole.object;
            let has_template = automation.settings.push_branch.text().is_some();
            let name = if has_template { "push-branch" } else { "delivery" };
            let at = location(object, name);
            Findings::new(automation.whole.file, found).add(at, Rule::InvalidBranch, sentence);
            break;
        }
    }
}

/// Returns a sentence if a branch cannot have commits of two automations.
fn collision(branch: &BranchName, automation: &Delivered<'_>, other: &Delivered<'_>) -> Option<String> {
    let title = other.whole.object.title();
    if let Some((base, other)) =
        automation.base.as_ref().zip(other.base.as_ref()).filter(|(base, other)| base != other)
    {
        return Some(format!(
            "the branch {branch} is rendered for the base {base} here, and for the base {other} by {title}: a branch has one base"
        ));
    }
    (automation.target.options != other.target.options).then(|| {
        format!(
            "the branch {branch} is rendered by {title} too, which has other push options: set the same spec.git.push.options here \
             and there, or another name here or there"
        )
    })
}

/// Returns true if a template has text that is substituted before it is applied.
fn contains_substitution(template: &SettingText) -> bool {
    template.text().is_some_and(|text| text.contains("${") || text.contains("<<"))
}
