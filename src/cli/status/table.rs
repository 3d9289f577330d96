//! Deployments as a table, in the format `wide` with their components.

use jiff::Timestamp;
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::{ComponentStatus, State};

use crate::cli::age::age;
use crate::cli::table::{GONE, NONE, Row, Table, Tone};
use crate::cli::terminal::{Palette, cell};
use crate::objects::ObjectName;
use crate::rollout::aggregate::component_progress;
use crate::rollout::cause::{cause, component_cause};

/// The columns of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    /// The namespace is the first column.
    pub(super) has_namespace: bool,
    /// The table has a row for each component, and columns for their fields.
    pub(super) is_wide: bool,
}

/// A table of deployments.
pub(super) struct StatusTable {
    columns: Columns,
    table: Table,
}

/// The fields of a row that all formats have, and those of `wide`.
struct Fields {
    namespace: String,
    name: String,
    state: Option<State>,
    progress: String,
    version: String,
    since: String,
    /// Image, tie, place and applier.
    wide: [String; 4],
    message: String,
}

impl StatusTable {
    pub(super) fn new(columns: Columns, palette: Palette) -> Self {
        Self { columns, table: Table::new(titles(columns).collect(), palette) }
    }

    /// Returns the rows of deployments; the first ones are below the titles of the columns.
    pub(super) fn rows<'o>(
        &mut self,
        objects: impl IntoIterator<Item = &'o DeploymentStatus>,
        now: Timestamp,
    ) -> String {
        let rows: Vec<Row> = objects.into_iter().flat_map(|object| self.rows_of(object, now)).collect();
        self.table.text(&rows)
    }

    /// Returns the row of a deployment that was deleted, or is no longer selected.
    pub(super) fn gone(&mut self, name: &ObjectName) -> String {
        let fields = Fields::new(&name.namespace, cell(&name.name));
        let mut row = self.row(fields);
        let state = usize::from(self.columns.has_namespace) + 1;
        row.cells[state] = GONE.to_owned();
        self.table.text(&[row])
    }

    fn rows_of(&self, object: &DeploymentStatus, now: Timestamp) -> Vec<Row> {
        let name = ObjectName::of(object);
        let mut rows = vec![self.row(deployment(&name, object, now))];
        if self.columns.is_wide {
            let components = object.status.iter().flat_map(|status| &status.report.components);
            rows.extend(components.map(|one| self.row(component(&name.namespace, one, now))));
        }
        rows
    }

    fn row(&self, fields: Fields) -> Row {
        let tone = match fields.state {
            Some(State::Failed) => Tone::Bad,
            Some(State::Installed) => Tone::Good,
            _ => Tone::Plain,
        };
        let state_cell = fields.state.map_or(NONE, State::as_str).to_owned();
        let namespace = self.columns.has_namespace.then_some(fields.namespace);
        let plain = [fields.name, state_cell, fields.progress, fields.version, fields.since];
        let wide = self.columns.is_wide.then_some(fields.wide);
        let cells = namespace.into_iter().chain(plain).chain(wide.into_iter().flatten());
        Row { cells: cells.chain([fields.message]).collect(), tone }
    }
}

fn titles(columns: Columns) -> impl Iterator<Item = &'static str> {
    let namespace = columns.has_namespace.then_some("NAMESPACE");
    let wide = columns.is_wide.then_some(["IMAGE", "TIE", "PLACE", "APPLIER"]);
    let plain = ["NAME", "STATE", "PROGRESS", "VERSION", "SINCE"];
    namespace.into_iter().chain(plain).chain(wide.into_iter().flatten()).chain(["MESSAGE"])
}

impl Fields {
    /// Creates the fields of a row without values.
    fn new(namespace: &str, name: String) -> Self {
        let none = || NONE.to_owned();
        Self {
            namespace: cell(namespace),
            name,
            state: None,
            progress: none(),
            version: none(),
            since: none(),
            wide: [none(), none(), none(), none()],
            message: String::new(),
        }
    }
}

fn deployment(name: &ObjectName, object: &DeploymentStatus, now: Timestamp) -> Fields {
    let mut fields = Fields::new(&name.namespace, cell(&name.name));
    let Some(status) = &object.status else { return fields };
    let report = &status.report;
    fields.state = Some(report.state);
    fields.progress = cell(&report.progress);
    fields.since = age(report.since.0, now);
    fields.message = cause(report).map(|cause| cell(&cause)).unwrap_or_default();
    if let Some(target) = &report.target {
        fields.version = cell(&target.tag);
        fields.wide[0] = cell(&target.to_string());
    }
    fields
}

fn component(namespace: &str, component: &ComponentStatus, now: Timestamp) -> Fields {
    let text = |text: &Option<String>| text.as_ref().map_or_else(|| NONE.to_owned(), |text| cell(text));
    // A component is indented below its deployment.
    let mut fields = Fields::new(namespace, format!("  {}", cell(&component.name)));
    fields.state = Some(component.state);
    if let Some((done, desired)) = component_progress(component) {
        fields.progress = format!("{done}/{desired}");
    }
    fields.since = age(component.since.0, now);
    let tie = component.tie.map(|tie| format!("{tie:?}").to_lowercase());
    fields.wide = [text(&component.image), text(&tie), text(&component.place), text(&component.applier)];
    fields.message = component_cause(component).map(|cause| cell(&cause)).unwrap_or_default();
    fields
}

#[cfg(test)]
mod tests {
    use tagboat_api::deployment_status::{StatusError, Tie};

    use super::super::examples::{object, report};
    use super::*;
    use crate::cli::terminal::PLAIN;

    fn now() -> Timestamp {
        "2026-01-31T12:05:00Z".parse().unwrap()
    }

    fn table(has_namespace: bool, is_wide: bool) -> StatusTable {
        StatusTable::new(Columns { has_namespace, is_wide }, PLAIN)
    }

    fn failed() -> DeploymentStatus {
        let mut report = report();
        let mut component = report.components[0].clone();
        component.name = "Deployment/apps/\u{1b}[2Jweb".to_owned();
        component.state = State::Failed;
        component.image = Some("ghcr.io/org/app:1.2.0".to_owned());
        component.tie = Some(Tie::Object);
        component.place = Some("apps/web.yaml:12".to_owned());
        component.applier = Some("Kustomization/flux-system/apps".to_owned());
        component.error = Some(StatusError {
            code: "ImagePullBackOff".to_owned(),
            source: component.name.clone(),
            message: "two\nlines".to_owned(),
        });
        (component.ready, component.updated_ready) = (0, Some(0));
        report.components.insert(0, component);
        report.state = State::Failed;
        report.progress = "2/4".to_owned();
        object("web", Some(report))
    }

    #[test]
    fn a_table_has_a_row_for_each_deployment() {
        let (installed, new) = (object("podinfo", Some(report())), object("new", None));
        let text = table(false, false).rows([&installed, &failed(), &new], now());
        let expected = "\
NAME     STATE      PROGRESS  VERSION  SINCE  MESSAGE
podinfo  installed  2/2       1.2.0    5m
web      failed     2/4       1.2.0    5m     Deployment/apps/\\u{1b}[2Jweb: ImagePullBackOff: two\\nlines
new      -          -         -        -
";
        assert_eq!(text, expected);
        let text = table(true, false).rows([&installed], now());
        let expected = "\
NAMESPACE  NAME     STATE      PROGRESS  VERSION  SINCE  MESSAGE
apps       podinfo  installed  2/2       1.2.0    5m
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_wide_table_has_a_row_for_each_component() {
        let text = table(false, true).rows([&failed()], now());
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split("  ").collect()).collect();
        let cells = |row: usize| -> Vec<&str> {
            rows[row].iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect()
        };
        let titles =
            ["NAME", "STATE", "PROGRESS", "VERSION", "SINCE", "IMAGE", "TIE", "PLACE", "APPLIER", "MESSAGE"];
        assert_eq!(cells(0), titles);
        assert_eq!(cells(1)[..6], ["web", "failed", "2/4", "1.2.0", "5m", "ghcr.io/org/app:1.2.0"]);
        let component = [
            r"Deployment/apps/\u{1b}[2Jweb",
            "failed",
            "0/2",
            "-",
            "5m",
            "ghcr.io/org/app:1.2.0",
            "object",
            "apps/web.yaml:12",
            "Kustomization/flux-system/apps",
            r"ImagePullBackOff: two\nlines",
        ];
        assert_eq!(cells(2), component);
        assert_eq!(cells(3)[..5], ["Deployment/apps/podinfo", "installed", "2/2", "-", "5m"]);
        assert!(text.lines().nth(2).unwrap().starts_with("  Deployment/"));
    }

    #[test]
    fn later_rows_have_the_columns_of_the_first() {
        let mut table = table(true, false);
        table.rows([&object("podinfo", Some(report()))], now());
        let name = ObjectName { namespace: "apps".to_owned(), name: "new".to_owned() };
        assert_eq!(table.gone(&name), "apps       new      gone       -         -        -\n");
        let text = table.rows([&object("a-longer-name", Some(report()))], now());
        assert_eq!(text, "apps       a-longer-name  installed  2/2       1.2.0    5m\n");
    }
}
