//! Generated states of workloads, as kubectl, kstatus, Argo CD and this module judge them.
//!
//! `hack/oracle/health` generates the states and asks the judges. Each difference between a judge and the state of our
//! component has a reason with a name. `docs/rollout-differences.md` has the reasons with the numbers of states.
//!
//! | files | contents |
//! |---|---|
//! | `state` | a state with the answers of the judges, and ours |
//! | `reasons` | the reasons of differences |
//! | `comparison` | all states and reasons, counted |
//! | `page` | the numbers as tables for the documentation |

mod comparison;
mod page;
mod reasons;
mod state;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::LazyLock;

    use super::comparison::Comparison;
    use super::page;
    use super::reasons::{self, DifferenceReason};
    use super::state::Judge;

    /// The comparison of all states, which takes some seconds, for all tests.
    static COMPARISON: LazyLock<Comparison> = LazyLock::new(|| {
        let table = include_str!("../../../../testdata/rollout/health.json");
        Comparison::new(serde_json::from_str(table).unwrap())
    });

    #[test]
    fn each_difference_from_other_tools_has_a_reason() {
        let comparison = &COMPARISON;
        assert!(comparison.rows >= 2000, "{} states", comparison.rows);
        let shown: Vec<&String> = comparison.problems.iter().take(20).collect();
        assert!(shown.is_empty(), "{} problems: {shown:#?}", comparison.problems.len());
    }

    #[test]
    fn each_reason_is_needed_and_has_its_own_name() {
        let comparison = &COMPARISON;
        let names: BTreeSet<&str> = reasons::all().map(|reason| reason.name).collect();
        assert_eq!(names.len(), reasons::all().count());
        let of_judges =
            |reason: &'static DifferenceReason| reason.judges.iter().map(|judge| (reason.name, *judge));
        let unneeded: Vec<(&str, Judge)> =
            reasons::all().flat_map(of_judges).filter(|key| !comparison.differ.contains_key(key)).collect();
        assert!(unneeded.is_empty(), "no state needs {unneeded:?}");
    }

    /// `TAGBOAT_REGENERATE=1` writes the tables of the page.
    #[test]
    fn the_page_of_differences_has_the_numbers() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rollout-differences.md");
        let expected = page::with_tables(&std::fs::read_to_string(&file).unwrap(), &COMPARISON);
        if std::env::var_os("TAGBOAT_REGENERATE").is_some() {
            std::fs::write(&file, &expected).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    }
}
