//! The output of `bootc status --json --format-version 1`, parsed.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use thiserror::Error;

use super::excerpt;
use crate::nodes::HostImage;
use crate::reference::Digest;

/// The supported version.
pub const API_VERSION: &str = "org.containers.bootc/v1";

/// The maximum length of an image's reference, in bytes.
const MAX_REFERENCE: usize = 1024;

/// The maximum length of a version, in bytes before it is escaped.
const MAX_VERSION: usize = 128;

/// The maximum length of a detail in an error, in bytes before it is escaped.
const MAX_DETAIL: usize = 256;

/// The images of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootcStatus {
    /// The booted image.
    pub booted: HostImage,
    /// The version of the booted image, printable.
    pub version: Option<String>,
    /// The image that the next reboot boots, if there is one.
    pub staged: Option<HostImage>,
}

/// The error of a status; foreign text in it is bounded and printable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StatusError {
    /// It is no document.
    #[error("`bootc status` printed no JSON: {0}")]
    NotJson(String),
    /// It has another version.
    #[error("`bootc status` has the version {0:?} in place of {API_VERSION:?}")]
    OtherVersion(String),
    /// A member is missing, or has another type or form.
    #[error("`bootc status` has an unexpected value: {0}")]
    Unexpected(String),
    /// The host is not booted from an image.
    #[error("`bootc status` has no booted image")]
    NotBooted,
    /// The host has changes beside its image.
    #[error("the {0} image has local changes, with which bootc cannot update the host")]
    Incompatible(&'static str),
}

/// The version, which is read alone: another one may have other members.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Versioned {
    api_version: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    booted: Option<Entry>,
    staged: Option<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    /// Absent if the host boots something other than an image.
    image: Option<Image>,
    #[serde(default)]
    incompatible: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    image: Reference,
    version: Option<String>,
    image_digest: String,
}

#[derive(Deserialize)]
struct Reference {
    image: String,
    transport: String,
}

/// Parses the output; members that are not needed are ignored.
///
/// # Errors
///
/// The output is not JSON, has another version or an unexpected value, or the host is not one that bootc can update.
pub fn parse(output: &[u8]) -> Result<BootcStatus, StatusError> {
    let version = from_json::<Versioned>(output)?.api_version.unwrap_or_default();
    if version != API_VERSION {
        return Err(StatusError::OtherVersion(excerpt::beginning(&version, MAX_DETAIL)));
    }
    let Status { booted, staged } = from_json::<Document>(output)?.status;
    // bootc gives a host with local changes no image, and neither one that is booted from something else.
    let booted = booted.filter(|entry| entry.image.is_some() || entry.incompatible);
    let booted = booted.ok_or(StatusError::NotBooted)?;
    let booted = compatible(booted, "booted")?;
    let version = booted.version.as_deref().map(|version| excerpt::beginning(version, MAX_VERSION));
    let staged = staged.map(|entry| compatible(entry, "staged").and_then(host_image)).transpose()?;
    Ok(BootcStatus { booted: host_image(booted)?, version, staged })
}

fn from_json<T: DeserializeOwned>(output: &[u8]) -> Result<T, StatusError> {
    serde_json::from_slice(output).map_err(|error| {
        let detail = excerpt::beginning(&error.to_string(), MAX_DETAIL);
        if error.classify() == Category::Data {
            StatusError::Unexpected(detail)
        } else {
            StatusError::NotJson(detail)
        }
    })
}

/// Returns the image of an entry without local changes.
///
/// An entry without an image has nothing but such changes.
fn compatible(entry: Entry, name: &'static str) -> Result<Image, StatusError> {
    entry.image.filter(|_| !entry.incompatible).ok_or(StatusError::Incompatible(name))
}

/// Checks an image; its reference is `TRANSPORT://IMAGE` if it does not come from a registry.
///
/// No reference for a registry has that form.
fn host_image(image: Image) -> Result<HostImage, StatusError> {
    let unexpected = |text: &str| StatusError::Unexpected(excerpt::beginning(text, MAX_DETAIL));
    let digest = Digest::parse(&image.image_digest).map_err(|_| unexpected(&image.image_digest))?;
    let Reference { image, transport } = image.image;
    let reference = if transport == "registry" { image } else { format!("{transport}://{image}") };
    if reference.len() > MAX_REFERENCE || !reference.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unexpected(&reference));
    }
    Ok(HostImage { reference, digest: digest.as_str().to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::digest;
    use super::*;

    /// An entry, as bootc 1.4 prints it.
    fn entry(reference: &str, digit: char) -> Value {
        json!({
            "image": {
                "image": {"image": reference, "transport": "registry"},
                "version": format!("42.{digit}"),
                "timestamp": "2026-01-02T03:04:05Z",
                "imageDigest": digest(digit),
                "architecture": "amd64",
            },
            "cachedUpdate": null,
            "incompatible": false,
            "pinned": false,
            "store": "ostreeContainer",
            "ostree": {"checksum": "0".repeat(64), "deploySerial": 0, "stateroot": "default"},
        })
    }

    fn document(booted: &Value, staged: &Value) -> Value {
        json!({
            "apiVersion": API_VERSION,
            "kind": "BootcHost",
            "metadata": {"name": "host"},
            "spec": {"image": {"image": "quay.io/os/base:42", "transport": "registry"}, "bootOrder": "default"},
            "status": {
                "staged": staged,
                "booted": booted,
                "rollback": null,
                "rollbackQueued": false,
                "type": "bootcHost",
            },
        })
    }

    fn parsed(document: &Value) -> Result<BootcStatus, StatusError> {
        parse(document.to_string().as_bytes())
    }

    fn image(reference: &str, digit: char) -> HostImage {
        HostImage { reference: reference.to_owned(), digest: digest(digit) }
    }

    #[test]
    fn the_booted_and_the_staged_image_are_read() {
        let booted = entry("quay.io/os/base:42", '1');
        let status = parsed(&document(&booted, &Value::Null)).unwrap();
        let expected = BootcStatus {
            booted: image("quay.io/os/base:42", '1'),
            version: Some("42.1".to_owned()),
            staged: None,
        };
        assert_eq!(status, expected);
        let wanted = format!("quay.io/os/base@{}", digest('a'));
        let status = parsed(&document(&booted, &entry(&wanted, '2'))).unwrap();
        assert_eq!(status, BootcStatus { staged: Some(image(&wanted, '2')), ..expected });
    }

    #[test]
    fn members_that_are_not_needed_may_be_absent() {
        let mut booted = entry("/var/os", '1');
        booted["image"]["image"]["transport"] = json!("oci");
        let needed = json!({"image": {"image": booted["image"]["image"], "imageDigest": digest('1')}});
        let document = json!({"apiVersion": API_VERSION, "status": {"booted": needed}});
        let expected = BootcStatus { booted: image("oci:///var/os", '1'), version: None, staged: None };
        assert_eq!(parsed(&document), Ok(expected));
    }

    #[test]
    fn a_status_that_is_not_usable_is_an_error_of_one_sentence() {
        let good = entry("quay.io/os/base:42", '1');
        let changed = |pointer: &str, value: Value| {
            let mut document = document(&good, &good);
            *document.pointer_mut(pointer).unwrap() = value;
            document
        };
        for (document, expected) in [
            (json!({}), r#"has the version "" in place of "org.containers.bootc/v1""#),
            (
                changed("/apiVersion", json!("org.containers.bootc/v2")),
                r#"has the version "org.containers.bootc/v2""#,
            ),
            (json!({"apiVersion": API_VERSION}), "unexpected value: missing field `status`"),
            (changed("/apiVersion", json!(1)), "unexpected value: invalid type: integer `1`"),
            (changed("/status", json!("booted")), "unexpected value: invalid type: string \"booted\""),
            (changed("/status/booted", Value::Null), "has no booted image"),
            (changed("/status/booted/image", Value::Null), "has no booted image"),
            (
                changed("/status/booted", json!({"image": null, "incompatible": true, "pinned": false})),
                "the booted image has local changes",
            ),
            (changed("/status/booted/incompatible", json!(true)), "the booted image has local changes"),
            (changed("/status/staged/incompatible", json!(true)), "the staged image has local changes"),
            (changed("/status/staged/image", Value::Null), "the staged image has local changes"),
            (changed("/status/booted/image/version", json!({})), "unexpected value: invalid type: map"),
            (changed("/status/booted/image/imageDigest", json!("sha256:1")), "unexpected value: sha256:1"),
            (
                changed("/status/staged/image/imageDigest", json!(null)),
                "unexpected value: invalid type: null",
            ),
            (changed("/status/booted/image/image/image", json!("a\u{1b}b")), r"unexpected value: a\u{1b}b"),
            (changed("/status/booted/image/image/image", json!("a b")), "unexpected value: a b"),
            (changed("/status/booted/image/image/image", json!("a".repeat(2000))), "unexpected value: aaa"),
        ] {
            let error = parsed(&document).expect_err(expected).to_string();
            assert!(error.contains(expected) && error.len() < 500 && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn hostile_output_is_an_error_with_a_bounded_sentence() {
        let text = |text: &str| text.as_bytes().to_vec();
        let member =
            |value: &str| format!(r#"{{"apiVersion": "{API_VERSION}", "status": {value}}}"#).into_bytes();
        for (output, expected) in [
            (Vec::new(), "printed no JSON: EOF"),
            (text("error: not root\n"), "printed no JSON: expected value at line 1"),
            (vec![0xff; 1000], "printed no JSON: expected value"),
            (text(&"[".repeat(1_000_000)), "unexpected value: invalid type: sequence"),
            (
                text(&format!(r#"{{"a": {}"#, r#"{"a":"#.repeat(200_000))),
                "printed no JSON: EOF while parsing",
            ),
            (member(&"[".repeat(1_000_000)), "printed no JSON: expected value"),
            (
                member(&format!("{}{}", "[".repeat(400_000), "]".repeat(400_000))),
                "unexpected value: invalid type: sequence",
            ),
            (member(&format!("\"{}\"", "x".repeat(1_000_000))), "unexpected value: invalid type: string"),
            (member(&format!("\"{}\"", "\\u001b".repeat(100_000))), "unexpected value: invalid type: string"),
            (member("{} trailing"), "printed no JSON: expected `,` or `}`"),
            (text("{} {}"), "printed no JSON: trailing characters"),
            (member("{}, \"status\": {}"), "unexpected value: duplicate field `status`"),
        ] {
            let error = parse(&output).expect_err(expected).to_string();
            assert!(error.contains(expected) && error.len() < 4000, "{expected}: {error}");
        }
    }

    #[test]
    fn a_long_or_unprintable_version_is_cut_and_escaped() {
        let mut booted = entry("quay.io/os/base:42", '1');
        booted["image"]["version"] = json!(format!("\u{202e}{}", "4".repeat(1_000_000)));
        let version = parsed(&document(&booted, &Value::Null)).unwrap().version.unwrap();
        assert!(
            version.starts_with(r"\u{202e}444") && version.ends_with("4…") && version.len() < 150,
            "{version}"
        );
    }
}
