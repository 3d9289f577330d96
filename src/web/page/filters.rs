//! The form with the filters of the list.

use serde::Serialize;
use tagboat_api::deployment_status::State;

use crate::web::http::Query;
use crate::web::selection::PARAMETERS;

/// The form with the filters, filled in with the values of a query.
#[derive(Debug, Serialize)]
pub(super) struct FiltersView {
    /// The filters that are texts.
    fields: Vec<Field>,
    states: Vec<Choice>,
    is_filtered: bool,
}

/// A filter that is a text.
#[derive(Debug, Serialize)]
struct Field {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    value: String,
}

/// A state in the choice of the filter.
#[derive(Debug, Serialize)]
struct Choice {
    word: &'static str,
    is_selected: bool,
}

impl FiltersView {
    /// Fills in the form; the values of the query may be invalid.
    pub(super) fn new(query: &Query) -> Self {
        let selected = query.get("state");
        let states = State::BY_SEVERITY.map(State::as_str);
        let choice = |word| Choice { word, is_selected: selected == Some(word) };
        let field = |name, label, hint| Field {
            name,
            label,
            hint,
            value: query.get(name).unwrap_or_default().to_owned(),
        };
        Self {
            fields: vec![
                field("namespace", "Namespace", ""),
                field("selector", "Labels", "team=edge"),
                field("automation", "Automation", ""),
                field("cluster", "Cluster", ""),
            ],
            states: states.into_iter().map(choice).collect(),
            is_filtered: PARAMETERS.into_iter().any(|name| query.get(name).is_some()),
        }
    }
}
