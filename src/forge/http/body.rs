//! The memory of a response, which is bounded before the response is parsed.

use std::time::Duration;

use tokio::time::timeout;

use super::exchange::Failed;
use crate::tenancy::{MemoryBudget, MemoryReservation};

/// The maximum number of values in a successful response.
///
/// A page of 100 pull requests of GitHub has about 50,000.
pub(super) const MAX_VALUES: usize = 100_000;

/// The maximum number of values in any other response.
pub(super) const MAX_REFUSAL_VALUES: usize = 2_000;

/// The maximum memory of a value in bytes: that of an object with one member.
const VALUE: u64 = 512;

/// The memory in bytes that a parsed response may take without a reservation.
const UNRESERVED_MEMORY: u64 = 1024 * 1024;

/// The maximum wait for memory.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// The memory that responses are reserved in, for one namespace.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseMemory<'m> {
    pub(super) budget: &'m MemoryBudget,
    pub(super) namespace: &'m str,
}

impl ResponseMemory<'_> {
    /// Reserves memory for a body of which only the length is known.
    ///
    /// # Errors
    ///
    /// If none is free for too long.
    pub(super) async fn for_length(self, length: usize) -> Result<MemoryReservation, Failed> {
        self.reserve(needed(length, length.min(MAX_VALUES))).await
    }

    /// Reserves memory for a body with a number of values, unless it is small.
    ///
    /// # Errors
    ///
    /// If none is free for too long.
    pub(super) async fn for_values(
        self,
        length: usize,
        values: usize,
    ) -> Result<Option<MemoryReservation>, Failed> {
        let bytes = needed(length, values);
        if bytes <= UNRESERVED_MEMORY { Ok(None) } else { self.reserve(bytes).await.map(Some) }
    }

    async fn reserve(self, bytes: u64) -> Result<MemoryReservation, Failed> {
        timeout(MAX_WAIT, self.budget.reserve(self.namespace, bytes)).await.map_err(|_| Failed::NoMemory)
    }
}

/// Returns the memory in bytes of a body together with its parsed form.
fn needed(length: usize, values: usize) -> u64 {
    // The texts of the parsed form are as long as the body.
    2 * length as u64 + values as u64 * VALUE
}

/// Returns the maximum number of values that a JSON text has.
pub(super) fn count_values(json: &[u8]) -> usize {
    let (mut values, mut is_text, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn values_in(value: &Value) -> usize {
        1 + match value {
            Value::Array(values) => values.iter().map(values_in).sum::<usize>(),
            Value::Object(members) => members.values().map(values_in).sum(),
            _ => 0,
        }
    }

    #[test]
    fn no_text_has_more_values_than_are_counted() {
        for (text, counted) in [
            ("7", 1),
            ("[]", 2),
            ("[0,0,0]", 4),
            (r#"{"a":{"b":[1,2]},"c":null}"#, 6),
            (r#"["[,{", "\"[,{\\", 1]"#, 4),
            (r#"{"\\":1,"\"":2}"#, 3),
        ] {
            assert_eq!(count_values(text.as_bytes()), counted, "{text}");
            assert!(values_in(&serde_json::from_str(text).unwrap()) <= counted, "{text}");
        }
    }

    /// A body of 8 MiB took 367 MiB, and nothing counted them.
    #[tokio::test(start_paused = true)]
    async fn memory_is_reserved_for_each_value() {
        let budget = MemoryBudget::new(100 * 1024 * 1024);
        let memory = ResponseMemory { budget: &budget, namespace: "apps" };
        assert!(memory.for_values(100_000, 1_000).await.unwrap().is_none());
        let page = json!(vec![0; 60_000]).to_string();
        let held = memory.for_values(page.len(), count_values(page.as_bytes())).await.unwrap();
        assert!(held.is_some());
        // A namespace has half of the budget.
        let second = memory.for_length(8 * 1024 * 1024).await;
        assert!(matches!(second, Err(Failed::NoMemory)), "{second:?}");
        drop(held);
        assert!(memory.for_length(8 * 1024 * 1024).await.is_ok());
    }
}
