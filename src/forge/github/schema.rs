//! Compares our GraphQL with GitHub's schema, by which `make oracle` has validated the documents.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::graphql::{self, APPROVALS, CHECKS, READY, UNKNOWN};
use super::repository::GithubRepository;
use crate::forge::exchange::{ApiRequest, Cost};
use crate::forge::pull_request::{Merge, MergeMethod, MergeTime};

fn validated() -> Value {
    serde_json::from_str(include_str!("../../../testdata/forges/graphql.json")).unwrap()
}

/// The text of each document by its name.
fn documents() -> BTreeMap<String, String> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/forge/github");
    let paths = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    let documents = paths.filter(|path| path.extension().is_some_and(|end| end == "graphql"));
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    documents.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
}

/// Every request, with all parts that it can have.
fn requests() -> Vec<ApiRequest> {
    let repository = GithubRepository { owner: "acme".to_owned(), name: "fleet".to_owned() };
    let base = "main".parse().unwrap();
    let methods = [MergeMethod::Commit, MergeMethod::Squash, MergeMethod::Rebase].map(Some);
    let merges = methods.into_iter().chain([None]).map(|method| Merge {
        time: MergeTime::WhenReady,
        method,
        head_commit: "1".repeat(40).parse().unwrap(),
    });
    let merges = merges
        .flat_map(|merge| [graphql::enqueue("PR_1", &merge), graphql::enable_auto_merge("PR_1", &merge)]);
    let reads = [
        graphql::viewer("ask who we are"),
        graphql::merge_state(&repository, 7, Cost::Read),
        graphql::merge_queue(&repository, &base, Some("cursor")),
        graphql::open_of_base(&repository, &base, None),
        graphql::disable_auto_merge("PR_1"),
    ];
    reads.into_iter().chain(merges).collect()
}

/// Panics unless an object has known members only, and all that are required.
fn assert_members(object: &Value, types: &Value, place: &str) {
    let (object, types) = (object.as_object().unwrap(), types.as_object().unwrap());
    for name in object.keys() {
        assert!(types.contains_key(name), "{place} has no {name}");
    }
    for (name, _) in types.iter().filter(|(_, kind)| kind.as_str().unwrap().ends_with('!')) {
        assert!(object.get(name).is_some_and(|value| !value.is_null()), "{place} lacks {name}");
    }
}

#[test]
fn each_document_is_one_that_the_schema_of_github_admits() {
    let schema = validated();
    let validated = schema["documents"].as_array().unwrap().iter();
    let text = |document: &Value, member: &str| document[member].as_str().unwrap().to_owned();
    let validated = validated.map(|document| (text(document, "name"), text(document, "text"))).collect();
    assert_eq!(documents(), validated, "`make oracle` validates changed documents");
}

#[test]
fn the_variables_of_each_request_are_those_of_its_document() {
    let (schema, documents) = (validated(), documents());
    let mut sent = Vec::new();
    for request in requests() {
        let body = request.body.unwrap();
        let document =
            schema["documents"].as_array().unwrap().iter().find(|one| one["text"] == body["query"]).unwrap();
        let (name, variables) = (document["name"].as_str().unwrap(), &body["variables"]);
        assert_members(variables, &document["variables"], name);
        if let Some(input) = variables.get("input") {
            let kind = document["variables"]["input"].as_str().unwrap().trim_end_matches('!');
            assert_members(input, &schema["inputs"][kind], kind);
            if let Some(method) = input.get("mergeMethod") {
                assert!(
                    schema["enums"]["PullRequestMergeMethod"].as_array().unwrap().contains(method),
                    "{method}"
                );
            }
        }
        sent.push(name.to_owned());
    }
    assert!(documents.keys().all(|name| sent.contains(name)), "{sent:?}");
}

#[test]
fn the_values_that_are_compared_are_known_to_the_schema() {
    let schema = validated();
    for (kind, values) in [
        ("RepositoryRuleType", [CHECKS.as_slice(), &[APPROVALS]].concat()),
        ("MergeStateStatus", [READY.as_slice(), &[UNKNOWN]].concat()),
    ] {
        for value in values {
            let known = schema["enums"][kind].as_array().unwrap();
            assert!(known.iter().any(|one| one == value), "{kind} {value}");
        }
    }
}
