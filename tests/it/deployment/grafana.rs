//! Tests of the Grafana dashboard.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tagboat::metrics::{Metrics, ObjectLabels, RunOutcome, SlotResource, WaitingImages, WriteState};
use tagboat_api::ObjectName;
use tagboat_api::deployment_status::State;

use super::read;

/// The labels that Prometheus adds to each time series of a target.
const TARGET_LABELS: [&str; 2] = ["job", "instance"];

/// The names of all time series of the program, with their labels.
type Series = BTreeMap<String, BTreeSet<String>>;

fn series() -> Series {
    let metrics = Metrics::default();
    let name = ObjectName { namespace: "n".to_owned(), name: "a".to_owned() };
    metrics.deployment_state(&name, Some(State::Installed));
    metrics.cluster_up("west", Some(true));
    metrics.rolled_out(Duration::from_secs(1));
    metrics.run_ended(RunOutcome::pushed);
    metrics.git_called("push", Duration::from_secs(1));
    metrics.api_request(Some(200));
    metrics.slot_waited(SlotResource::api, "n", Duration::from_secs(1));
    let object =
        ObjectLabels { kind: "ImageUpdateAutomation", name: "a".to_owned(), namespace: "n".to_owned() };
    metrics.reconciled(&object, Duration::from_secs(1), false);
    metrics.files_examined(&object, 1, 1);
    let waiting = WaitingImages { reason: "Frozen".to_owned(), policies: 1, until: None };
    metrics.set_write_state(&name, WriteState { waiting: Some(waiting), held: Some(1), windows: None });
    let text = metrics.to_text();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let names = types.flat_map(|(name, kind)| {
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        suffixes.iter().map(move |suffix| (format!("{name}{suffix}"), BTreeSet::new()))
    });
    let mut series: Series = names.collect();
    for sample in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, labels)) = sample.split_once('{') else { continue };
        let known = series.get_mut(name).unwrap_or_else(|| panic!("{sample} has no type"));
        known.extend(TARGET_LABELS.map(str::to_owned));
        let labels = labels.split_once('}').unwrap().0;
        known.extend(labels.split(',').filter_map(|label| Some(label.split_once('=')?.0.to_owned())));
    }
    series
}

/// Returns the labels in `by (…)` of a query.
fn groups(query: &str) -> Option<Vec<&str>> {
    let (labels, _) = query.split_once("by (")?.1.split_once(')')?;
    Some(labels.split(',').map(str::trim).collect())
}

/// Returns the labels in a legend such as `{{namespace}}/{{name}}`.
fn legend(format: &str) -> impl Iterator<Item = &str> {
    format.split("{{").skip(1).filter_map(|part| Some(part.split_once("}}")?.0.trim()))
}

/// Returns the names before the label filters of a query.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let parts = query.split('{').collect::<Vec<_>>();
    let before = parts[..parts.len() - 1].to_vec();
    before.into_iter().map(|part| {
        part.rsplit(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .next()
            .unwrap_or_default()
    })
}

#[test]
fn the_metrics_of_the_dashboard_exist() {
    let dashboard: Value = serde_json::from_str(&read("grafana/tagboat.json")).unwrap();
    let series = series();
    let mut used = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().unwrap();
            for name in names(query) {
                assert!(series.contains_key(name), "{name} of {query:?} is not in {series:?}");
                used.insert(name.to_owned());
                let labels: Vec<&str> =
                    series[name].iter().map(String::as_str).chain(TARGET_LABELS).collect();
                let groups = groups(query);
                for label in groups.iter().flatten() {
                    assert!(labels.contains(label), "{name} of {query:?} has no label {label}");
                }
                let shown = groups.unwrap_or(labels);
                for label in legend(target["legendFormat"].as_str().unwrap_or_default()) {
                    assert!(shown.contains(&label), "{query:?} has no label {label} for its legend");
                }
            }
        }
    }
    for name in [
        "tagboat_deployments",
        "tagboat_deployment_failed",
        "tagboat_rollout_duration_seconds_bucket",
        "tagboat_cluster_up",
    ] {
        assert!(used.contains(name), "no panel shows {name}");
    }
}

#[test]
fn the_variables_of_the_dashboard_have_a_metric_and_a_label() {
    let dashboard: Value = serde_json::from_str(&read("grafana/tagboat.json")).unwrap();
    let series = series();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let queries: Vec<&str> =
        variables.iter().filter_map(|variable| variable.pointer("/query/query")?.as_str()).collect();
    assert!(!queries.is_empty(), "{variables:#?}");
    for query in queries {
        let arguments = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let (name, label) = arguments.and_then(|arguments| arguments.split_once(", ")).expect(query);
        assert!(series.contains_key(name), "{name} of {query:?} is not in {series:?}");
        assert!(TARGET_LABELS.contains(&label) || series[name].contains(label), "{query:?}");
    }
}
