//! Log warnings of the rooms below, printed on standard error.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tracing::subscriber::{self, DefaultGuard};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::cli::terminal::say;
use crate::telemetry::Fields;

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
        let (message, error) = (fields.text("message"), fields.text("error"));
        let line = if error.is_empty() { message.to_owned() } else { format!("{message}: {error}") };
        if self.0.lock().insert(line.clone()) {
            say(&format!("warning: {line}"));
        }
    }
}
