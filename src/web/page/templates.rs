//! The templates of the pages, rendered off the async workers.

use std::sync::Arc;

use axum::http::StatusCode;
use handlebars::Handlebars;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::printable::printable;
use crate::web::http::{EntityTag, Problem};

/// The maximum number of pages that are rendered at the same time; others wait.
const MAX_RENDERED: usize = 2;

const LAYOUT: &str = include_str!("../../../templates/page/layout.hbs");
const LIST: &str = include_str!("../../../templates/page/list.hbs");
const DEPLOYMENT: &str = include_str!("../../../templates/page/deployment.hbs");
const NODE_POOL: &str = include_str!("../../../templates/page/node_pool.hbs");
const NODE_POOLS: &str = include_str!("../../../templates/page/node_pools.hbs");
const ERROR: &str = include_str!("../../../templates/page/error.hbs");
const FILTERS: &str = include_str!("../../../templates/page/filters.hbs");

/// The sources of all templates, which include each other.
pub(super) const SOURCES: [&str; 7] = [LAYOUT, LIST, DEPLOYMENT, NODE_POOL, NODE_POOLS, ERROR, FILTERS];

/// A template of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Template {
    /// The deployments by namespace.
    List,
    /// One deployment.
    Deployment,
    /// One node pool.
    NodePool,
    /// All node pools.
    NodePools,
    /// An error.
    Error,
}

impl Template {
    const ALL: [Self; 5] = [Self::List, Self::Deployment, Self::NodePool, Self::NodePools, Self::Error];

    fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Deployment => "deployment",
            Self::NodePool => "node_pool",
            Self::NodePools => "node_pools",
            Self::Error => "error",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::List => LIST,
            Self::Deployment => DEPLOYMENT,
            Self::NodePool => NODE_POOL,
            Self::NodePools => NODE_POOLS,
            Self::Error => ERROR,
        }
    }
}

/// The templates of all pages. Clones share them.
#[derive(Clone)]
pub(super) struct Templates {
    handlebars: Arc<Handlebars<'static>>,
    slots: Arc<Semaphore>,
}

impl Templates {
    /// Parses the templates, which the program contains.
    pub(super) fn new() -> Self {
        let mut handlebars = Handlebars::new();
        handlebars.set_strict_mode(true);
        let templates = Template::ALL.map(|template| (template.name(), template.text()));
        for (name, text) in [("layout", LAYOUT), ("filters", FILTERS)].into_iter().chain(templates) {
            handlebars.register_template_string(name, text).expect("the templates of the program are valid");
        }
        Self { handlebars: Arc::new(handlebars), slots: Arc::new(Semaphore::new(MAX_RENDERED)) }
    }

    /// Renders a page; `view` computes its content, to which the tag is added.
    ///
    /// HTML in texts is escaped, and control characters are shown as escapes.
    ///
    /// # Errors
    ///
    /// If a template does not fit its content, which is a defect.
    pub(super) async fn render(
        &self,
        template: Template,
        tag: Option<&EntityTag>,
        view: impl FnOnce() -> Value + Send + 'static,
    ) -> Result<String, Problem> {
        let slot = self.slots.clone().acquire_owned().await;
        let handlebars = self.handlebars.clone();
        let tag = tag.map(|tag| tag.as_str().to_owned());
        let rendering = tokio::task::spawn_blocking(move || {
            let mut view = view();
            view["tag"] = tag.into();
            make_printable(&mut view);
            let page = handlebars.render(template.name(), &view);
            drop(slot);
            page
        });
        match rendering.await {
            Ok(Ok(page)) => Ok(page),
            Ok(Err(error)) => Err(failure(&error.to_string())),
            Err(error) => Err(failure(&error.to_string())),
        }
    }
}

fn failure(cause: &str) -> Problem {
    tracing::error!(error = cause, "cannot render a page");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be rendered")
}

/// Returns the content of a page as a value.
pub(super) fn value(view: &impl Serialize) -> Value {
    serde_json::to_value(view).expect("the content of a page has texts as keys")
}

/// Replaces control characters in all texts by escapes.
fn make_printable(value: &mut Value) {
    match value {
        Value::String(text) => *text = printable(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(make_printable),
        Value::Object(members) => members.values_mut().for_each(make_printable),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
