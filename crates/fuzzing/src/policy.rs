//! Policies from any text: one line each for repository, filter, extract, range and tags.

use serde_json::{Value, json};
use tagboat::policy::{Ages, Outcome, Policy, TagAge, Verdict};
use tagboat::reference::{RepositoryAddress, TagList};
use tagboat_api::settings::PolicySettings;

use crate::text::text_of;

/// The maximum number of lines that are read as tags.
const MAX_TAGS: usize = 30;

/// Evaluates a policy: one line each for repository, filter, extract, range and tags.
pub fn policy(input: &[u8]) {
    let text = text_of(input);
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (address, pattern, extract, range) = (next(), next(), next(), next());
    check_address(address);
    let tags: TagList = lines.take(MAX_TAGS).collect();
    let filter = json!({"pattern": pattern, "extract": extract});
    for rule in [
        json!({"semver": {"range": range}}),
        json!({"alphabetical": {"order": "asc"}}),
        json!({"alphabetical": {"order": "desc"}}),
        json!({"numerical": {"order": "asc"}}),
        json!({"numerical": {"order": "desc"}}),
    ] {
        for filter in [&Value::Null, &filter] {
            check_selection(&rule, filter, &tags);
        }
    }
}

fn check_address(text: &str) {
    let Ok(address) = RepositoryAddress::parse(text, false) else { return };
    assert_eq!(address.to_string(), text);
    let again =
        RepositoryAddress::parse(&address.canonical(), false).expect("a canonical name is an address");
    assert_eq!(again.canonical(), address.canonical());
}

/// Checks that each tag has one verdict with a reason.
/// No tag may beat the winner.
fn check_selection(rule: &Value, filter: &Value, tags: &TagList) {
    let spec = json!({"imageRepositoryRef": {"name": "app"}, "policy": rule, "filterTags": filter});
    let spec = serde_json::from_value(spec).expect("the spec has the form of one");
    let Ok(policy) = Policy::new(&spec, PolicySettings::default()) else { return };
    let ages = Ages { now: jiff::Timestamp::UNIX_EPOCH, age_of: &|_| TagAge::default() };
    let Ok(selection) = policy.select(tags, ages) else { return };
    let mut judged: Vec<&str> = selection.verdicts().iter().map(|verdict| verdict.tag).collect();
    judged.sort_unstable_by(|left, right| right.cmp(left));
    assert_eq!(judged, tags.iter().collect::<Vec<_>>());
    assert!(selection.verdicts().iter().all(|verdict| !selection.reason(verdict).is_empty()));
    assert_eq!(selection.latest().is_some(), selection.error().is_none());
    let Some(winner) = selection.latest() else { return };
    let is_nan = |verdict: &Verdict<'_>| {
        verdict.value.as_deref().is_some_and(|value| value.to_lowercase().contains("nan"))
    };
    // NaN has no order, and a rule of its own.
    if selection.verdicts().iter().any(is_nan) {
        return;
    }
    for verdict in selection.verdicts() {
        if verdict.outcome == Outcome::Candidate {
            let order = policy.compare(verdict.tag, winner).expect("both are in the contest");
            assert!(order.is_le(), "{} and {winner}", verdict.tag);
        }
    }
}
