//! A fast path that finds the winner without a verdict on every tag.

use super::rule::{Direction, Rule};
use super::{Check, Policy};
use crate::reference::TagList;
use crate::tenancy::Interrupted;
use tagboat_api::settings::TextOrder;

impl Policy {
    /// Returns the winner of a [`Selection`](super::Selection) by searching from the best tag down.
    ///
    /// Many policies choose from one long list, which all but the first of them find sorted. Returns `None` if the
    /// order of the list does not determine the winner, or if there is none: a selection then gives the reasons.
    ///
    /// # Errors
    ///
    /// Returns an error if `check`, which is called between two tags, fails.
    pub fn select_fast<'t>(
        &self,
        tags: &'t TagList,
        check: Check<'_>,
    ) -> Result<Option<&'t str>, Interrupted> {
        if !self.settings.minimum_age.duration().is_zero() {
            return Ok(None);
        }
        match (&self.filter, &self.rule) {
            (Some(Err(_)), _) => Ok(None),
            (Some(Ok(filter)), _) if filter.extracts() => Ok(None),
            (_, Rule::SemVer(_)) => {
                find(tags.by_version(), check, |tag| self.is_accepted(tag) && self.rule.evaluate(tag).is_ok())
            }
            (_, Rule::Text(TextOrder::Bytes, Direction::Ascending)) => {
                find(tags.iter(), check, |tag| self.is_accepted(tag))
            }
            (_, Rule::Text(TextOrder::Bytes, Direction::Descending)) => {
                find(tags.iter().rev(), check, |tag| self.is_accepted(tag))
            }
            (_, Rule::Text(TextOrder::Natural, _) | Rule::Number(_)) => Ok(None),
        }
    }

    /// Returns true if neither the annotation nor the filter rejects a tag.
    fn is_accepted(&self, tag: &str) -> bool {
        !self.settings.exclude.contains(tag)
            && self
                .filter
                .as_ref()
                .is_none_or(|filter| filter.as_ref().is_ok_and(|filter| filter.value(tag).is_some()))
    }
}

/// Finds the first tag that `is_wanted` accepts, with a check between two tags.
fn find<'t>(
    tags: impl Iterator<Item = &'t str>,
    check: Check<'_>,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Option<&'t str>, Interrupted> {
    for tag in tags {
        check()?;
        if is_wanted(tag) {
            return Ok(Some(tag));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};
    use tagboat_api::policy::ImagePolicySpec;
    use tagboat_api::settings::PolicySettings;

    use super::*;
    use crate::policy::{Ages, TagAge};

    fn policy(rule: &Value, filter: &Value, annotations: &Value) -> Policy {
        let mut spec = json!({"imageRepositoryRef": {"name": "r"}, "policy": rule});
        if !filter.is_null() {
            spec["filterTags"] = filter.clone();
        }
        let spec: ImagePolicySpec = serde_json::from_value(spec).unwrap();
        let settings =
            PolicySettings::from_annotations(&serde_json::from_value(annotations.clone()).unwrap()).unwrap();
        Policy::new(&spec, settings).unwrap()
    }

    /// Compares every rule, filter and list with a full selection.
    #[test]
    fn the_fast_path_finds_the_winner_of_the_selection() {
        let rules = [
            json!({"semver": {"range": "*"}}),
            json!({"semver": {"range": "1.x"}}),
            json!({"semver": {"range": ">=1.0.0-0"}}),
            json!({"semver": {"range": ">9"}}),
            json!({"alphabetical": {}}),
            json!({"alphabetical": {"order": "desc"}}),
            json!({"numerical": {}}),
        ];
        let filters = [
            Value::Null,
            json!({"pattern": "^v?1"}),
            json!({"pattern": "nothing"}),
            json!({"pattern": "("}),
            json!({"pattern": "^v?(?P<v>.*)$", "extract": "$v"}),
        ];
        let annotations = [
            json!({}),
            json!({"tagboat.dev/exclude": "v1.2.0"}),
            json!({"tagboat.dev/exclude": "[2.0.0, '9', latest]"}),
            json!({"tagboat.dev/minimum-age": "1h"}),
        ];
        let lists = [
            "",
            "latest",
            "1.0.0 v1.0.0 01.0.0 1.0",
            "v1.2.0 1.2.0 1.2.0+b 1.2.0-rc.1 2.0.0-rc.1 2.0.0 latest main 9 10",
            "1.10.0 1.9.0 1.9.0-0 0.1.0 v0.2.0 1.2-rc.1 1-alpha.1.2",
            "3 20 100 -1",
        ];
        let mut glances = 0;
        for (rule, filter) in rules.iter().flat_map(|rule| filters.iter().map(move |filter| (rule, filter))) {
            for annotation in &annotations {
                let policy = policy(rule, filter, annotation);
                for list in lists {
                    let tags: TagList = list.split_whitespace().collect();
                    let Some(winner) = policy.select_fast(&tags, &|| Ok(())).unwrap() else {
                        continue;
                    };
                    let age_of = |_: &str| TagAge::default();
                    let ages = Ages { now: Timestamp::UNIX_EPOCH, age_of: &age_of };
                    let selection = policy.select(&tags, ages).unwrap();
                    let found = (selection.latest(), selection.matures_in());
                    assert_eq!((Some(winner), None), found, "{rule} {filter} {annotation} {list}");
                    glances += 1;
                }
            }
        }
        assert!(glances > 100, "{glances}");
    }

    #[test]
    fn the_fast_path_always_answers_for_ordered_rules() {
        let tags: TagList = ["1.0.0", "1.1.0", "2.0.0-rc.1", "latest"].into_iter().collect();
        for (rule, winner) in [
            (json!({"semver": {"range": "*"}}), Some("1.1.0")),
            (json!({"semver": {"range": ">=1.0.0-0"}}), Some("2.0.0-rc.1")),
            (json!({"semver": {"range": ">5"}}), None),
            (json!({"alphabetical": {}}), Some("latest")),
            (json!({"alphabetical": {"order": "desc"}}), Some("1.0.0")),
        ] {
            let policy = policy(&rule, &Value::Null, &json!({}));
            assert_eq!(policy.select_fast(&tags, &|| Ok(())), Ok(winner), "{rule}");
        }
    }
}
