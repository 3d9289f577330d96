//! Notifications for Flux's notification controller, or a replacement of it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use reqwest::{Client, StatusCode, Url};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::announcer::Announcement;
use super::deliveries::{Deliveries, Delivery};
use crate::backoff::Backoff;
use crate::error::chain;
use crate::net::{HttpClientError, HttpClientOptions};
use crate::objects::EventType;
use crate::secrets::redact_url;
use crate::tenancy::QueueLimits;

/// The timeout of a receiver's response.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of tries to send a notification to a receiver that fails.
const TRIES: u32 = 5;

/// The delay between these tries.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };

/// The bounds of the notifications in flight.
///
/// Beyond them, the oldest one of the namespace with the most is dropped.
const MAX_IN_FLIGHT: QueueLimits = QueueLimits { items: 1000, bytes: 32 * 1024 * 1024 };

/// The maximum wait for notifications in flight at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends notifications to an address in the background. Clones share the bounds.
#[derive(Clone)]
pub struct Notifier {
    client: Client,
    address: Url,
    deliveries: Deliveries,
}

/// The error of an address that cannot receive notifications.
#[derive(Debug, thiserror::Error)]
pub enum NotifierError {
    /// The address is invalid.
    #[error("--events-addr {address:?} is not a valid address for events: write http://HOST or https://HOST")]
    Address {
        /// The address without user info.
        address: String,
    },
    /// The HTTP client for it cannot be made.
    #[error("cannot make a client for events")]
    Client(#[from] HttpClientError),
}

impl Notifier {
    /// Makes a notifier that sends to an address over HTTP.
    ///
    /// # Errors
    ///
    /// If the address is invalid.
    pub fn new(address: &str) -> Result<Self, NotifierError> {
        let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| NotifierError::Address { address: redact_url(address) })?;
        let connections = HttpClientOptions {
            timeout: Some(TIMEOUT),
            follows_redirects: true,
            ..HttpClientOptions::with_timeouts(TIMEOUT, TIMEOUT)
        };
        let client = connections.build()?;
        Ok(Self { client, address: url, deliveries: Deliveries::new(MAX_IN_FLIGHT) })
    }

    /// Sends a notification of an event, unless it is a mere trace.
    ///
    /// It is sent by the process `instance` of a controller.
    pub(super) fn notify(&self, announcement: &Announcement, controller: &str, instance: &str) {
        if announcement.event.type_ == EventType::Trace {
            return;
        }
        let (client, address, object) =
            (self.client.clone(), self.address.clone(), named(&announcement.object));
        let metadata = announcement.event_annotations();
        let annotations = metadata.iter().map(|(name, value)| name.len() + value.len());
        // Twice its text: once as it is and once as JSON.
        let bytes = 2 * (announcement.event.message.len() + annotations.sum::<usize>()) + 1024;
        let body = body(announcement, &metadata, controller, instance);
        let delivery = Delivery {
            namespace: announcement.object.namespace.clone().unwrap_or_default(),
            label: object.clone(),
            bytes,
            work: async move {
                if let Err(message) = send(&client, address, &body).await {
                    tracing::error!(object, error = message, "unable to send the event");
                }
            },
        };
        for object in self.deliveries.start(delivery) {
            tracing::error!(object, "event not sent: too many events of its namespace are queued");
        }
    }

    /// Waits briefly until nothing is in flight.
    pub(super) async fn finish(&self) {
        self.deliveries.drain(SHUTDOWN_TIMEOUT).await;
    }
}

/// Sends a body until it is accepted, or a retry makes no sense.
async fn send(client: &Client, address: Url, body: &Value) -> Result<(), String> {
    for attempt in 1..=TRIES {
        let message = match client.post(address.clone()).json(body).send().await {
            Ok(response) => match response.status() {
                status if status.is_success() => return Ok(()),
                // It was sent before, and the receiver knows it.
                StatusCode::TOO_MANY_REQUESTS => return Ok(()),
                status if status.is_server_error() => format!("the receiver responded with status {status}"),
                status => return Err(format!("the receiver responded with status {status}")),
            },
            // The address may hold a password.
            Err(error) => chain(&error.without_url()),
        };
        if attempt == TRIES {
            return Err(message);
        }
        sleep(BACKOFF.after(attempt)).await;
    }
    Ok(())
}

/// Returns the body of a notification in the format of Flux's receivers.
fn body(
    announcement: &Announcement,
    metadata: &BTreeMap<String, String>,
    controller: &str,
    instance: &str,
) -> Value {
    let Announcement { object, event, time, .. } = announcement;
    let severity = if event.type_ == EventType::Warning { "error" } else { "info" };
    let time = Timestamp::from_second(time.as_second()).unwrap_or(*time);
    let mut body = json!({
        "involvedObject": object,
        "severity": severity,
        "timestamp": time.to_string(),
        "message": event.message,
        "reason": event.reason,
    });
    if !metadata.is_empty() {
        body["metadata"] = json!(metadata);
    }
    body["reportingController"] = json!(controller);
    body["reportingInstance"] = json!(instance);
    body
}

/// Formats an object for the log.
pub(super) fn named(object: &ObjectReference) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!("{}/{}/{}", text(&object.kind), text(&object.namespace), text(&object.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Event;
    use crate::objects::cluster::EventIdentity;

    #[test]
    fn the_body_has_the_format_of_receivers() {
        let mut announcement = Announcement {
            object: ObjectReference {
                kind: Some("ImageUpdateAutomation".to_owned()),
                namespace: Some("n".to_owned()),
                name: Some("a".to_owned()),
                ..Default::default()
            },
            event: Event {
                type_: EventType::Normal,
                reason: "Succeeded".to_owned(),
                message: "pushed".to_owned(),
            },
            annotations: BTreeMap::new(),
            identity: EventIdentity::Repeated,
            time: "2026-01-01T00:00:00.5Z".parse().unwrap(),
        };
        let read = |announcement: &Announcement| {
            body(announcement, &announcement.event_annotations(), "image-automation-controller", "host")
        };
        assert_eq!(
            read(&announcement),
            json!({
                "involvedObject": {"kind": "ImageUpdateAutomation", "namespace": "n", "name": "a"},
                "severity": "info",
                "timestamp": "2026-01-01T00:00:00Z",
                "message": "pushed",
                "reason": "Succeeded",
                "reportingController": "image-automation-controller",
                "reportingInstance": "host",
            })
        );
        announcement.event.type_ = EventType::Warning;
        announcement.annotations.insert("event.toolkit.fluxcd.io/team".to_owned(), "x".to_owned());
        let body = read(&announcement);
        assert_eq!(body["severity"], "error");
        assert_eq!(body["metadata"], json!({"event.toolkit.fluxcd.io/team": "x"}));
    }

    #[test]
    fn an_invalid_receiver_address_is_refused() {
        for address in ["", "notification-controller", "ftp://x/", "/x"] {
            let error = Notifier::new(address).err().unwrap();
            assert!(error.to_string().starts_with(&format!("--events-addr {address:?} is no")), "{error}");
        }
        for address in ["ftp://user:hunter2@x/", "user:hunter2@x", "http://user:hunter2@x:none/"] {
            let error = Notifier::new(address).err().unwrap();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
