//! The selection of deployments by the options of the command.

use std::collections::BTreeSet;

use kube::ResourceExt;
use tagboat_api::DeploymentStatus;

use super::image::AwaitedImage;
use crate::objects::cluster::Scope;

/// A selection of deployments.
pub(super) struct Selection {
    /// The namespace and the labels, by which the API server selects.
    pub(super) scope: Scope,
    /// The names; any if there is none.
    pub(super) names: BTreeSet<String>,
    /// The automation that updates the marker of a component.
    pub(super) automation: Option<String>,
    /// The image of `--image`; without names, only deployments of its repository are selected.
    pub(super) image: Option<AwaitedImage>,
}

impl Selection {
    /// Returns true if a deployment is selected.
    pub(super) fn selects(&self, object: &DeploymentStatus) -> bool {
        self.selects_name(&object.name_any())
            && self.automation.as_ref().is_none_or(|automation| has_automation(object, automation))
            && (!self.names.is_empty()
                || self.image.as_ref().is_none_or(|image| has_repository(object, image)))
    }

    /// Returns true if a deployment of that name can be selected.
    pub(super) fn selects_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.contains(name)
    }

    /// Returns a sentence for each name that is not among those of the selected deployments.
    pub(super) fn missing(&self, found: impl Iterator<Item = String>) -> Vec<String> {
        let found: BTreeSet<String> = found.collect();
        let missing = self.names.difference(&found);
        let place = self.place();
        missing.map(|name| format!("no DeploymentStatus {name} {place} is selected")).collect()
    }

    /// Returns the sentence for an empty selection.
    pub(super) fn nothing(&self) -> String {
        format!("no DeploymentStatus {} is selected", self.place())
    }

    fn place(&self) -> String {
        match &self.scope.namespace {
            Some(namespace) => format!("in the namespace {namespace}"),
            None => "of the cluster".to_owned(),
        }
    }
}

/// Returns true if an automation updates the marker of a component.
fn has_automation(object: &DeploymentStatus, automation: &str) -> bool {
    let mut components = object.status.iter().flat_map(|status| &status.report.components);
    components.any(|component| component.automation.as_deref() == Some(automation))
}

fn has_repository(object: &DeploymentStatus, image: &AwaitedImage) -> bool {
    let target = object.status.as_ref().and_then(|status| status.report.target.as_ref());
    target.is_some_and(|target| image.is_of_repository(target))
}

#[cfg(test)]
mod tests {
    use super::super::examples::{object, report};
    use super::*;

    fn selection() -> Selection {
        Selection { scope: Scope::default(), names: BTreeSet::new(), automation: None, image: None }
    }

    #[test]
    fn an_automation_is_that_of_a_component() {
        let mut report = report();
        report.components[0].automation = Some("apps".to_owned());
        let (podinfo, new) = (object("podinfo", Some(report)), object("new", None));
        for (automation, expected) in [("apps", [true, false]), ("other", [false, false])] {
            let selection = Selection { automation: Some(automation.to_owned()), ..selection() };
            assert_eq!([&podinfo, &new].map(|object| selection.selects(object)), expected, "{automation}");
        }
    }

    #[test]
    fn an_image_selects_by_its_repository_unless_there_are_names() {
        let (app, new) = (object("podinfo", Some(report())), object("new", None));
        for (image, names, expected) in [
            ("ghcr.io/org/app:9", &[][..], [true, false]),
            ("ghcr.io/org/other:9", &[], [false, false]),
            ("ghcr.io/org/other:9", &["podinfo"], [true, false]),
            ("ghcr.io/org/app:9", &["new"], [false, true]),
        ] {
            let image = Some(AwaitedImage::parse(image).unwrap());
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let selection = Selection { names, image, ..selection() };
            assert_eq!(
                [&app, &new].map(|object| selection.selects(object)),
                expected,
                "{:?}",
                selection.image
            );
        }
    }

    #[test]
    fn each_missing_name_has_a_sentence() {
        let names = ["a", "podinfo", "z"].map(str::to_owned).into();
        let scope = Scope { namespace: Some("apps".to_owned()), labels: None };
        let selection = Selection { names, scope, ..selection() };
        let sentence = |name: &str| format!("no DeploymentStatus {name} in the namespace apps is selected");
        let found = ["podinfo".to_owned()].into_iter();
        assert_eq!(selection.missing(found), [sentence("a"), sentence("z")]);
    }
}
