//! Log warnings of the rooms below, printed on standard error.

use std::collections::BTreeSet;
use std::fmt;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::subscriber::{self, DefaultGuard};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::cli::terminal::say;

/// Prints each warning of this thread once on standard error, until the guard is dropped.
pub(super) fn print_logged() -> DefaultGuard {
    subscriber::set_default(tracing_subscriber::registry().with(Warnings::default()))
}

#[derive(Default)]
struct Warnings(Mutex<BTreeSet<String>>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN || !metadata.target().starts_with("tagboat") {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields { message, error } = fields;
        let line = if error.is_empty() { message } else { format!("{message}: {error}") };
        if self.0.lock().insert(line.clone()) {
            say(&format!("warning: {line}"));
        }
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    error: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "error" => self.error = format!("{value:?}"),
            _ => {}
        }
    }
}
