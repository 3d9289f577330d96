//! A rate limiter for the events of one object.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;

use crate::secrets::Fingerprint;
use crate::tenancy::{FairCache, Rate, TokenBucket};

/// The rate of client-go's `EventSourceObjectSpamFilter`, which Flux's controllers record with.
const RATE: Rate = Rate { burst: 25, refill: Duration::from_secs(300) };

/// The maximum number of tracked objects, as in client-go.
const MAX_OBJECTS: usize = 4096;

/// Limits the events of one source per object, as client-go's spam filter does.
///
/// An object may have 25 events, then one in five minutes, of any content.
#[derive(Debug)]
pub(super) struct EventLimiter {
    buckets: FairCache<Fingerprint, TokenBucket>,
}

impl Default for EventLimiter {
    fn default() -> Self {
        Self { buckets: FairCache::new(MAX_OBJECTS) }
    }
}

impl EventLimiter {
    /// Returns whether one more event of an object may be recorded; if so, it counts.
    pub(super) fn admits(&mut self, object: &ObjectReference, now: Instant) -> bool {
        let key = key(object);
        if let Some(bucket) = self.buckets.get(&key) {
            return bucket.try_take(RATE, now);
        }
        let mut bucket = TokenBucket::default();
        let admits = bucket.try_take(RATE, now);
        self.buckets.insert(object.namespace.as_deref().unwrap_or_default(), key, bucket);
        admits
    }
}

/// Returns the fingerprint of the fields by which client-go identifies objects.
fn key(object: &ObjectReference) -> Fingerprint {
    let ObjectReference { kind, namespace, name, uid, api_version, .. } = object;
    let fields = [kind, namespace, name, uid, api_version];
    Fingerprint::of(fields.map(|field| field.as_deref().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(namespace: &str, name: &str, uid: &str) -> ObjectReference {
        let text = |text: &str| Some(text.to_owned());
        ObjectReference { namespace: text(namespace), name: text(name), uid: text(uid), ..Default::default() }
    }

    #[test]
    fn each_object_has_25_events_and_then_one_in_five_minutes() {
        let mut limiter = EventLimiter::default();
        let start = Instant::now() + Duration::from_secs(100_000);
        let mut admitted = |object: &ObjectReference, minute: u64, count: usize| {
            let now = start + Duration::from_secs(60 * minute);
            (0..count).filter(|_| limiter.admits(object, now)).count()
        };
        let one = object("n", "a", "1");
        assert_eq!(admitted(&one, 0, 100), 25);
        assert_eq!([4, 5, 6, 10, 25].map(|minute| admitted(&one, minute, 100)), [0, 1, 0, 1, 3]);
        for other in [object("n", "a", "2"), object("n", "b", "1"), object("m", "a", "1")] {
            assert_eq!(admitted(&other, 30, 100), 25, "{other:?}");
        }
        // After two hours and five minutes without events the bucket is full again.
        assert_eq!(admitted(&one, 25 + 125, 100), 25);
    }
}
