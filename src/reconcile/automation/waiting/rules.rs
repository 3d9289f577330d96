//! The annotations that decide when an automation may write.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tagboat_api::settings::{AutomationSettings, own_annotations};
use tagboat_api::{ObjectName, Reason};

use super::phrases::{
    source_of_all_namespaces, source_of_automation, source_of_namespace, unknown_annotation_of,
};
use crate::error::ReconcileError;
use crate::schedule::{Agenda, Freeze, Rule, SettingsError, Source, Windows};

/// The annotation with the windows of an automation or of a Namespace.
pub const WINDOWS: &str = "tagboat.dev/windows";

/// The annotation by which a Namespace stops its automations.
pub const FREEZE: &str = "tagboat.dev/freeze";

/// The annotation by which the Namespace of the controller stops all automations.
pub const FREEZE_ALL: &str = "tagboat.dev/freeze-all";

/// The beginning of annotations that may be a misspelt freeze of all automations.
const FREEZE_BEGIN: &str = "tagboat.dev/fre";

/// The maximum number of lists of windows that are kept in their parsed form.
const MAX_PARSED: usize = 1_024;

/// The maximum length of such a list in bytes.
///
/// A longer one is parsed each time.
const MAX_PARSED_LENGTH: usize = 8 * 1_024;

/// The annotations of Namespaces that decide about the automations of one Namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceRules {
    /// The freeze of the Namespace.
    freeze: Option<String>,
    /// The windows of the Namespace.
    windows: Option<String>,
    /// The freezes of all automations, by the Namespace that has them.
    freeze_all: BTreeMap<String, String>,
    /// An annotation of Tagboat that Namespaces do not have.
    ///
    /// It may be a misspelt freeze. If it is that of another Namespace, its name is here.
    unknown: Option<(Option<String>, String)>,
}

impl NamespaceRules {
    /// Takes the rules from the annotations of a Namespace.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let value = |name: &str| annotations.get(name).cloned();
        let unknown = unknown(annotations).next().map(|name| (None, name));
        Self { freeze: value(FREEZE), windows: value(WINDOWS), freeze_all: BTreeMap::new(), unknown }
    }

    /// Adds the freeze of all automations from the annotations of a Namespace where it counts.
    #[must_use]
    pub fn with_freeze_all(mut self, namespace: &str, annotations: &BTreeMap<String, String>) -> Self {
        let value = annotations.get(FREEZE_ALL).map(|value| (namespace.to_owned(), value.clone()));
        self.freeze_all.extend(value);
        let is_freeze = |name: &String| name.to_ascii_lowercase().starts_with(FREEZE_BEGIN);
        let misspelt =
            || Some((Some(namespace.to_owned()), unknown(annotations).find(|name| is_freeze(name))?));
        self.unknown = self.unknown.or_else(misspelt);
        self
    }

    /// Returns the rules as the agenda of an automation, with its own windows last.
    ///
    /// # Errors
    ///
    /// If the Namespace has an annotation of ours that Namespaces do not have.
    pub fn agenda(
        &self,
        automation: &ObjectName,
        own: Option<&Windows>,
        parsed: &ParsedRules,
    ) -> Result<Agenda, RulesError> {
        let namespace = automation.namespace.as_str();
        if let Some((of, annotation)) = self.unknown.clone() {
            let namespace = of.unwrap_or_else(|| namespace.to_owned());
            return Err(RulesError::Unknown { namespace, annotation });
        }
        let own = own.map(|windows| Source {
            name: source_of_automation(automation),
            rule: Rule::Windows(windows.clone()),
        });
        let freezes =
            self.freeze_all.iter().filter_map(|(namespace, value)| freeze(FREEZE_ALL, namespace, value));
        let own_freeze = self.freeze.iter().filter_map(|value| freeze(FREEZE, namespace, value));
        let windows = self.windows.iter().map(|value| Source {
            name: source_of_namespace(namespace, WINDOWS),
            rule: match parsed.windows(value) {
                Ok(windows) => Rule::Windows(windows.as_ref().clone()),
                Err(error) => Rule::Invalid(error),
            },
        });
        let sources = freezes.chain(own_freeze).chain(windows).chain(own);
        let has_rule = |source: &Source| match &source.rule {
            Rule::Windows(windows) => !windows.entries().is_empty(),
            Rule::Freeze(_) | Rule::Invalid(_) => true,
        };
        Ok(Agenda::new(sources.filter(has_rule).collect()))
    }
}

/// Returns the annotations of Tagboat that Namespaces do not have.
fn unknown(annotations: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    let is_unknown = |name: &&String| ![FREEZE, FREEZE_ALL, WINDOWS].contains(&name.as_str());
    own_annotations(annotations).map(|(name, _)| name).filter(is_unknown).cloned()
}

/// Returns the freeze of an annotation, unless its value says that there is none.
fn freeze(annotation: &str, namespace: &str, value: &str) -> Option<Source> {
    let rule = match Freeze::parse(value) {
        Ok(freeze) => Rule::Freeze(freeze?),
        Err(error) => Rule::Invalid(error),
    };
    let name = match annotation {
        FREEZE_ALL => source_of_all_namespaces(namespace),
        _ => source_of_namespace(namespace, annotation),
    };
    Some(Source { name, rule })
}

/// The lists of windows that were parsed. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ParsedRules(Arc<Mutex<HashMap<String, Parsed>>>);

type Parsed = Result<Arc<Windows>, SettingsError>;

impl ParsedRules {
    /// Parses a list of windows, unless that was done before.
    ///
    /// # Errors
    ///
    /// If the list is not valid.
    pub fn windows(&self, text: &str) -> Parsed {
        if let Some(known) = self.0.lock().get(text) {
            return known.clone();
        }
        let parsed: Parsed = text.parse().map(Arc::new);
        if text.len() > MAX_PARSED_LENGTH {
            return parsed;
        }
        let mut all = self.0.lock();
        if all.len() >= MAX_PARSED {
            all.clear();
        }
        all.insert(text.to_owned(), parsed.clone());
        parsed
    }
}

/// Returns the own windows of an automation.
///
/// # Errors
///
/// If the list is not valid.
pub fn own_windows(
    settings: &AutomationSettings,
    parsed: &ParsedRules,
) -> Result<Option<Arc<Windows>>, RulesError> {
    settings.windows.text().map(|text| parsed.windows(text)).transpose().map_err(RulesError::Windows)
}

/// The error of rules that cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RulesError {
    /// The windows of the automation are not valid.
    #[error("annotation {WINDOWS}")]
    Windows(#[source] SettingsError),
    /// A Namespace has an annotation that does not exist.
    #[error("{}{annotation}: allowed are {FREEZE}, {FREEZE_ALL} and {WINDOWS}", unknown_annotation_of(.namespace))]
    Unknown {
        /// The Namespace.
        namespace: String,
        /// The annotation.
        annotation: String,
    },
    /// The annotations of a Namespace cannot be read.
    #[error("the annotations of namespace {namespace} cannot be read")]
    Unreadable {
        /// The Namespace.
        namespace: String,
        /// The cause.
        source: Arc<dyn Error + Send + Sync>,
    },
}

/// Only a changed annotation helps.
impl ReconcileError for RulesError {
    fn reason(&self) -> Reason {
        Reason::InvalidSettings
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

type Read = dyn Fn(&str) -> Result<NamespaceRules, RulesError> + Send + Sync;

/// Reads the rules of a Namespace as they are now. Clones share the source.
#[derive(Clone)]
pub struct RulesReader {
    read: Arc<Read>,
    is_cached: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl RulesReader {
    /// Creates a reader.
    pub fn new(read: impl Fn(&str) -> Result<NamespaceRules, RulesError> + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), is_cached: Arc::new(|| true) }
    }

    /// Sets whether a read costs nothing at present; without it, it never costs anything.
    #[must_use]
    pub fn cached_while(self, is_cached: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_cached: Arc::new(is_cached), ..self }
    }

    /// Returns true if a read costs nothing at present.
    pub fn is_cached(&self) -> bool {
        (self.is_cached)()
    }

    /// Reads the rules that hold for the automations of a Namespace.
    ///
    /// # Errors
    ///
    /// If its annotations cannot be read.
    pub fn read(&self, namespace: &str) -> Result<NamespaceRules, RulesError> {
        (self.read)(namespace)
    }
}

impl Default for RulesReader {
    fn default() -> Self {
        Self::new(|_| Ok(NamespaceRules::default()))
    }
}

impl fmt::Debug for RulesReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RulesReader").finish_non_exhaustive()
    }
}
