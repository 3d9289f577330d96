//! The log: one line per event, as JSON or as text.
//!
//! The JSON has the keys that `flux logs` reads. Events of a reconcile are in a span of that name, and each
//! of their lines gets the names of the object.

use std::fmt::{self, Write as _};
use std::io::Write;

use jiff::Timestamp;
use kube::Resource;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tagboat_api::{DeploymentStatus, NodePool};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::printable::{printable, printable_json};

/// The span of a reconcile.
const RECONCILE: &str = "reconcile";

/// The log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// Everything except traces.
    Debug,
    /// Everything except debug messages and traces.
    Info,
    /// Errors only.
    Error,
}

/// The format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEncoding {
    /// A JSON object.
    Json,
    /// Text for people.
    Console,
}

/// Starts logging to standard error, until the process ends.
///
/// A second call has no effect, because there is one log.
pub fn log(level: LogLevel, encoding: LogEncoding) {
    let (own, others) = match level {
        LogLevel::Trace => (LevelFilter::TRACE, LevelFilter::DEBUG),
        LogLevel::Debug => (LevelFilter::DEBUG, LevelFilter::INFO),
        LogLevel::Info => (LevelFilter::INFO, LevelFilter::ERROR),
        LogLevel::Error => (LevelFilter::ERROR, LevelFilter::ERROR),
    };
    let mut filter = Targets::new().with_default(others).with_target("tagboat", own);
    if level != LogLevel::Trace {
        // It reports each failed request without its cluster and object, and our own lines have both.
        filter = filter.with_target("kube_client::client::builder", LevelFilter::OFF);
    }
    let lines = Lines { encoding, output: Mutex::new(std::io::stderr()) };
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}

/// A tracing layer that writes lines.
struct Lines<W> {
    encoding: LogEncoding,
    output: Mutex<W>,
}

/// The recorded fields of a span or an event.
#[derive(Debug, Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Returns the text of a field, which is empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), json!(value));
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
    W: Write + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut reconcile = Map::new();
        for span in context.event_scope(event).into_iter().flatten() {
            if span.name() == RECONCILE
                && let Some(Fields(known)) = span.extensions().get::<Fields>()
            {
                reconcile.clone_from(known);
            }
        }
        let line = line(*event.metadata().level(), fields.0, &reconcile, Timestamp::now());
        let mut text = match self.encoding {
            LogEncoding::Json => printable_json(Value::Object(line).to_string()),
            LogEncoding::Console => for_people(line),
        };
        text.push('\n');
        // An error of writing the log cannot be reported anywhere.
        let _ = self.output.lock().write_all(text.as_bytes());
    }
}

/// Returns the members of a line, in the order in which Flux writes them.
fn line(
    level: Level,
    mut fields: Map<String, Value>,
    reconcile: &Map<String, Value>,
    time: Timestamp,
) -> Map<String, Value> {
    let level = match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    let mut line = Map::new();
    line.insert("level".to_owned(), json!(level));
    line.insert("ts".to_owned(), json!(format!("{time:.3}")));
    line.insert("msg".to_owned(), fields.remove("message").unwrap_or_else(|| json!("")));
    if let (Some(Value::String(kind)), Some(namespace), Some(name)) =
        (reconcile.get("kind"), reconcile.get("namespace"), reconcile.get("name"))
    {
        for (key, value) in [
            ("controller", json!(kind.to_lowercase())),
            ("controllerGroup", json!(group(kind))),
            ("controllerKind", json!(kind)),
            (kind.as_str(), json!({"name": name, "namespace": namespace})),
            ("namespace", namespace.clone()),
            ("name", name.clone()),
            ("reconcileID", reconcile.get("reconcile_id").cloned().unwrap_or_default()),
        ] {
            line.insert(key.to_owned(), value);
        }
    }
    line.extend(fields);
    line
}

/// Returns the API group of a kind that is reconciled.
fn group(kind: &str) -> String {
    let is_own = [DeploymentStatus::kind(&()), NodePool::kind(&())].iter().any(|own| own == kind);
    if is_own { DeploymentStatus::group(&()).into_owned() } else { tagboat_api::IMAGE_GROUP.to_owned() }
}

/// Formats a line as text: time, level and message, and the other members as JSON.
fn for_people(mut line: Map<String, Value>) -> String {
    let mut take = |key: &str| match line.remove(key) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let mut text = format!("{}\t{}\t{}", take("ts"), take("level").to_uppercase(), printable(&take("msg")));
    if !line.is_empty() {
        let _ = write!(text, "\t{}", printable_json(Value::Object(line).to_string()));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(encoding: LogEncoding, say: impl FnOnce()) -> String {
        let buffer = SharedBuffer::default();
        let lines = Lines { encoding, output: Mutex::new(buffer.clone()) };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), say);
        String::from_utf8(buffer.0.lock().clone()).unwrap()
    }

    #[test]
    fn a_line_of_a_reconcile_has_the_keys_that_flux_reads() {
        let text = logged(LogEncoding::Json, || {
            let span = tracing::info_span!(
                "reconcile",
                kind = "ImagePolicy",
                namespace = "n",
                name = "a",
                reconcile_id = "7"
            );
            span.in_scope(|| tracing::error!(error = "GitOperationFailed", "no \"way\"\nin"));
        });
        let mut line: Value = serde_json::from_str(&text).unwrap();
        let time = line["ts"].take();
        let time = time.as_str().unwrap();
        assert!(
            time.parse::<Timestamp>().is_ok() && time.len() == "2026-01-01T00:00:00.000Z".len(),
            "{time}"
        );
        let expected = json!({
            "level": "error",
            "ts": null,
            "msg": "no \"way\"\nin",
            "controller": "imagepolicy",
            "controllerGroup": "image.toolkit.fluxcd.io",
            "controllerKind": "ImagePolicy",
            "ImagePolicy": {"name": "a", "namespace": "n"},
            "namespace": "n",
            "name": "a",
            "reconcileID": "7",
            "error": "GitOperationFailed",
        });
        assert_eq!(line, expected);
        assert!(text.ends_with("}\n") && text.lines().count() == 1);
    }

    /// Formerly, a NodePool was one of Flux's kinds.
    #[test]
    fn own_kinds_have_their_own_group() {
        for (kind, expected) in [
            ("ImagePolicy", "image.toolkit.fluxcd.io"),
            ("DeploymentStatus", "tagboat.dev"),
            ("NodePool", "tagboat.dev"),
        ] {
            assert_eq!(group(kind), expected);
        }
    }

    #[test]
    fn a_line_for_people_is_one_line() {
        let text = logged(LogEncoding::Console, || tracing::info!(count = 3, "two\nlines"));
        let (time, rest) = text.split_once('\t').unwrap();
        assert!(time.parse::<Timestamp>().is_ok(), "{text}");
        assert_eq!(rest, "INFO\ttwo\\nlines\t{\"count\":3}\n");
    }

    /// The log quotes servers and repositories, and a terminal shows it.
    #[test]
    fn log_lines_have_control_and_bidirectional_characters_escaped() {
        let message = "a\u{1b}[2J\u{9b}\u{202e}b";
        for encoding in [LogEncoding::Json, LogEncoding::Console] {
            let text = logged(encoding, || tracing::info!(error = message, "{message}"));
            let line = text.strip_suffix('\n').unwrap();
            assert!(!line.replace('\t', "").contains(crate::printable::is_unprintable), "{line:?}");
            let json: Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap_or_default();
            assert!(
                encoding == LogEncoding::Console || json["msg"] == message && json["error"] == message,
                "{line}"
            );
        }
    }
}
