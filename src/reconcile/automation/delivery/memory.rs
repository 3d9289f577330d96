//! The last line of a pull request's body, by which it is recognized.
//!
//! The line is invisible where bodies are shown. It has hashes only: of the automations, of each policy with its image, and of
//! our text. So a rebuilt cluster finds its pull requests, and no state is needed but that of the forge.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::str;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tagboat_api::ObjectName;

use crate::reference::ImageReference;
use crate::secrets::Fingerprint;

/// The begin of the line.
const START: &str = "[//]: # (tagboat ";

/// The end of the line.
const END: char = ')';

/// The version of the line.
const VERSION: &str = "1";

/// The length in bytes of the end of a body that is searched.
///
/// It has room for our longest line and much text of people below it. Forges admit bodies of several MiB.
const MAX_END: usize = 256 << 10;

/// The placeholder of the hash of a text that is not ours.
const NOT_OURS: &str = "-";

/// The mark of a pull request that lacks labels, reviewers or assignees.
const TODO: &str = "extras";

/// The number of characters of the hash of an automation or a text.
///
/// Four characters of Base64 are three bytes, without a rest.
const LONG: usize = 12;

/// The number of characters of the hash of a policy, and of its image.
const SHORT: usize = 8;

/// The first characters of a fingerprint in Base64.
///
/// They are no `String`, so that a parsed line takes little more memory than its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct HashText<const LENGTH: usize>([u8; LENGTH]);

impl<const LENGTH: usize> HashText<LENGTH> {
    /// Returns the hash of some texts.
    fn of(parts: &[&str]) -> Self {
        let mut text = [0; LENGTH];
        let fingerprint = Fingerprint::of(parts);
        URL_SAFE_NO_PAD
            .encode_slice(&fingerprint.as_bytes()[..LENGTH / 4 * 3], &mut text)
            .expect("three bytes are four characters");
        Self(text)
    }

    /// Reads a hash.
    fn read(text: &str) -> Option<Self> {
        let text: [u8; LENGTH] = text.as_bytes().try_into().ok()?;
        let is_good = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        text.iter().all(is_good).then_some(Self(text))
    }
}

impl<const LENGTH: usize> fmt::Display for HashText<LENGTH> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(str::from_utf8(&self.0).expect("the characters of Base64 are ASCII"))
    }
}

/// A hash of an automation and its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerHash(HashText<LONG>);

impl OwnerHash {
    /// Returns the hash of an automation with its `spec.update.path`.
    pub fn of(automation: &ObjectName, path: Option<&str>) -> Self {
        let parts = path.unwrap_or_default().split('/').filter(|part| !matches!(*part, "" | "."));
        let path = parts.collect::<Vec<_>>().join("/");
        Self(HashText::of(&["owner", &automation.namespace, &automation.name, &path]))
    }
}

/// A hash of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyHash(HashText<SHORT>);

impl PolicyHash {
    /// Returns the hash of a policy.
    pub fn of(policy: &ObjectName) -> Self {
        Self(HashText::of(&["policy", &policy.namespace, &policy.name]))
    }
}

/// A hash of a policy with its image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageHash {
    policy: PolicyHash,
    image: HashText<SHORT>,
}

impl ImageHash {
    /// Returns the hash of a policy with its image.
    pub fn of(policy: &ObjectName, image: &ImageReference) -> Self {
        let image = HashText::of(&["image", &policy.namespace, &policy.name, &image.to_string()]);
        Self { policy: PolicyHash::of(policy), image }
    }

    /// Returns the hash of the policy alone.
    pub fn policy(&self) -> &PolicyHash {
        &self.policy
    }
}

/// A hash of a title or of a body without its last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextHash(HashText<LONG>);

impl TextHash {
    /// Returns the hash of a text.
    ///
    /// Forges change line ends and white space, so these do not count.
    pub fn of(text: &str) -> Self {
        let mut normal = String::with_capacity(text.len());
        for (at, line) in text.trim().lines().enumerate() {
            if at > 0 {
                normal.push('\n');
            }
            normal.push_str(line.trim_end());
        }
        Self(HashText::of(&["text", &normal]))
    }
}

/// The reason for which Tagboat closed a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedReason {
    /// Nothing was left to change on the base.
    NothingLeft,
    /// Another branch superseded it.
    Superseded,
    /// Another pull request of the same branch was open as well.
    Duplicate,
}

impl ClosedReason {
    /// Returns the name in the line.
    pub fn name(self) -> &'static str {
        match self {
            Self::NothingLeft => "nothing-left",
            Self::Superseded => "superseded",
            Self::Duplicate => "duplicate",
        }
    }
}

/// The content of the last line of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The automations of the pull request.
    pub owners: BTreeSet<OwnerHash>,
    /// The policies that it changes, with their images.
    pub images: BTreeSet<ImageHash>,
    /// The title that we wrote; none if it is not ours.
    pub title: Option<TextHash>,
    /// The body that we wrote, without the line; none if it is not ours.
    pub body: Option<TextHash>,
    /// The reason for closing it, if Tagboat did.
    pub closed: Option<ClosedReason>,
    /// True if labels, reviewers or assignees are still to be added.
    pub is_incomplete: bool,
}

impl Memory {
    /// Divides a body into its text and our last line, if there is one.
    ///
    /// Text that people added below the line counts as text. A line that cannot be read counts as none.
    pub fn split(body: &str) -> (String, Option<Self>) {
        let Some((line, memory)) = Self::find(body) else { return (body.to_owned(), None) };
        let text = format!("{}{}", &body[..line.start], &body[line.end..]);
        (text.trim_end().replace("\r\n", "\n"), Some(memory))
    }

    /// Reads the line of a body, if it has one.
    pub fn of_body(body: &str) -> Option<Self> {
        Self::find(body).map(|(_, memory)| memory)
    }

    /// Finds the line in the end of a body, and its place.
    fn find(body: &str) -> Option<(Range<usize>, Self)> {
        let mut end = body.len();
        for line in end_of(body).split_inclusive('\n').rev() {
            let start = end - line.len();
            if let Some(memory) = Self::read(line) {
                return Some((start..end, memory));
            }
            end = start;
        }
        None
    }

    fn read(line: &str) -> Option<Self> {
        let mut words = line.trim().strip_prefix(START)?.strip_suffix(END)?.split_whitespace();
        if words.next() != Some(VERSION) {
            return None;
        }
        let mut memory = Self::default();
        for word in words {
            match word.split_once('=')? {
                ("owners", list) => memory.owners = owners(list)?,
                ("images", list) => memory.images = images(list)?,
                ("title", hash) => memory.title = text_hash(hash)?,
                ("body", hash) => memory.body = text_hash(hash)?,
                ("closed", "nothing-left") => memory.closed = Some(ClosedReason::NothingLeft),
                ("closed", "superseded") => memory.closed = Some(ClosedReason::Superseded),
                ("closed", "duplicate") => memory.closed = Some(ClosedReason::Duplicate),
                ("todo", TODO) => memory.is_incomplete = true,
                // A newer version may add more.
                _ => {}
            }
        }
        (!memory.owners.is_empty()).then_some(memory)
    }

    /// Returns the policies of the pull request.
    pub fn policies(&self) -> BTreeSet<&PolicyHash> {
        self.images.iter().map(ImageHash::policy).collect()
    }

    /// Returns the memory in bytes that it takes beside its own size.
    pub(super) fn size(&self) -> usize {
        // The nodes of a set are half full at least.
        2 * (self.owners.len() * size_of::<OwnerHash>() + self.images.len() * size_of::<ImageHash>())
    }

    /// Returns true if none of the automations of the pull request is among some.
    pub fn is_of_others(&self, owners: &BTreeSet<OwnerHash>) -> bool {
        self.owners.is_disjoint(owners)
    }
}

/// Prints the line.
impl fmt::Display for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owners: Vec<String> = self.owners.iter().map(|owner| owner.0.to_string()).collect();
        write!(formatter, "{START}{VERSION} owners={} images=", owners.join(","))?;
        for ImageHash { policy, image } in &self.images {
            write!(formatter, "{}{image}", policy.0)?;
        }
        let text =
            |hash: &Option<TextHash>| hash.as_ref().map_or(NOT_OURS.to_owned(), |hash| hash.0.to_string());
        write!(formatter, " title={} body={}", text(&self.title), text(&self.body))?;
        if let Some(closed) = self.closed {
            write!(formatter, " closed={}", closed.name())?;
        }
        if self.is_incomplete {
            write!(formatter, " todo={TODO}")?;
        }
        write!(formatter, "{END}")
    }
}

/// Returns the whole lines at the end of a body that are searched.
fn end_of(body: &str) -> &str {
    let start = body.ceil_char_boundary(body.len().saturating_sub(MAX_END));
    let end = &body[start..];
    if start == 0 { end } else { end.split_once('\n').map_or("", |(_, lines)| lines) }
}

fn owners(list: &str) -> Option<BTreeSet<OwnerHash>> {
    list.split(',').map(|owner| HashText::read(owner).map(OwnerHash)).collect()
}

/// Reads a list of hashes of one length, without separators: the line must be short.
fn images(list: &str) -> Option<BTreeSet<ImageHash>> {
    if !list.is_ascii() || !list.len().is_multiple_of(2 * SHORT) {
        return None;
    }
    let image = |at: usize| {
        let (policy, image) = list[at..at + 2 * SHORT].split_at(SHORT);
        Some(ImageHash { policy: PolicyHash(HashText::read(policy)?), image: HashText::read(image)? })
    };
    (0..list.len()).step_by(2 * SHORT).map(image).collect()
}

/// Reads the hash of a text; the outer none is an error.
#[allow(clippy::option_option, reason = "a text that is not ours is no error")]
fn text_hash(text: &str) -> Option<Option<TextHash>> {
    match text {
        NOT_OURS => Some(None),
        text => HashText::read(text).map(|hash| Some(TextHash(hash))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "apps".to_owned(), name: name.to_owned() }
    }

    pub(in super::super) fn image(policy: &str, tag: &str) -> ImageHash {
        let image = format!("ghcr.io/acme/{policy}:{tag}");
        ImageHash::of(&name(policy), &ImageReference::parse(&image).unwrap())
    }

    pub(in super::super) fn owner(automation: &str) -> OwnerHash {
        OwnerHash::of(&name(automation), Some("./clusters/prod"))
    }

    fn memory() -> Memory {
        Memory {
            owners: [owner("fleet"), owner("other")].into(),
            images: [image("web", "1"), image("api", "2")].into(),
            title: Some(TextHash::of("Update web to 1")),
            body: Some(TextHash::of("a\n\nb")),
            closed: None,
            is_incomplete: false,
        }
    }

    #[test]
    fn the_line_is_written_and_read_alike() {
        for memory in [
            memory(),
            Memory { images: BTreeSet::new(), title: None, body: None, ..memory() },
            Memory { closed: Some(ClosedReason::Superseded), ..memory() },
            Memory { closed: Some(ClosedReason::Duplicate), ..memory() },
            Memory { closed: Some(ClosedReason::NothingLeft), body: None, ..memory() },
            Memory { is_incomplete: true, ..memory() },
        ] {
            let line = memory.to_string();
            assert!(line.starts_with("[//]: # (tagboat 1 owners=") && line.ends_with(')'), "{line}");
            assert_eq!(Memory::of_body(&line), Some(memory.clone()), "{line}");
            assert_eq!(Memory::split(&format!("a\n\n{line}\n")), ("a".to_owned(), Some(memory)));
        }
        // A hash changes with the version of the program only if it is meant to.
        let line = Memory { closed: None, ..memory() }.to_string();
        assert_eq!(line.len(), "[//]: # (tagboat 1 owners=, images= title= body=)".len() + 4 * 12 + 2 * 16);
    }

    #[test]
    fn edited_bodies_are_read_too() {
        let line = memory().to_string();
        for (body, text) in [
            (format!("text\r\n\r\n{line}\r\n"), "text"),
            (format!("text\n  {line}  "), "text"),
            (format!("{line}\nadded below"), "added below"),
            (format!("a\n\n{line}\n\nb"), "a\n\n\nb"),
            (format!("{}\n{line}", Memory { owners: [owner("old")].into(), ..memory() }), ""),
            (line.replace(" title=", " future=x title="), ""),
            (line.replace(" title=", " todo=other title="), ""),
        ] {
            let (found, read) = Memory::split(&body);
            assert_eq!(read, Some(memory()), "{body}");
            if !text.is_empty() {
                assert_eq!(found, text, "{body}");
            }
        }
        for defect in [
            String::new(),
            "text".to_owned(),
            line.replace("tagboat 1", "tagboat 2"),
            line.replace("tagboat 1", "other 1"),
            line.replace("owners=", "owners=x"),
            line.replace("images=", "images=x"),
            line.replace("images=", "images=ä"),
            line.replace("title=", "title=+"),
            line.replace(" title=", " title "),
            line[..line.len() - 1].to_owned(),
            format!("x{line}"),
            "[//]: # (tagboat 1)".to_owned(),
            format!("[//]: # (tagboat 1 owners=AAAAAAAAAAAA images={})", "A".repeat(MAX_END)),
        ] {
            assert_eq!(Memory::of_body(&defect), None, "{defect}");
            assert_eq!(Memory::split(&defect), (defect.clone(), None));
        }
    }

    /// Bodies of 8 MiB of line breaks were searched as a whole, over and over.
    #[test]
    fn the_line_is_looked_for_in_the_end_of_a_body_only() {
        let line = memory().to_string();
        let below = |length: usize| format!("text\nä{line}\n{line}\n{}", "\n".repeat(length));
        for (body, is_found) in [
            (below(MAX_END - line.len() - 2), true),
            // Its begin is cut off, or it may be.
            (below(MAX_END - line.len() - 1), false),
            (below(MAX_END), false),
            (below(8 << 20), false),
            (format!("{}\n{line}", "ä".repeat(MAX_END)), true),
        ] {
            let found = Memory::of_body(&body);
            assert_eq!(found, is_found.then(memory), "{}", body.len());
            assert_eq!(Memory::split(&body).1, found);
        }
    }

    #[test]
    fn hashes_distinguish_what_they_are_of() {
        assert_ne!(owner("fleet"), OwnerHash::of(&name("fleet"), Some("clusters/staging")));
        assert_eq!(owner("fleet"), OwnerHash::of(&name("fleet"), Some("clusters//prod/")));
        assert_eq!(OwnerHash::of(&name("fleet"), None), OwnerHash::of(&name("fleet"), Some("./")));
        assert_ne!(image("web", "1"), image("web", "2"));
        assert_eq!(image("web", "1").policy(), &PolicyHash::of(&name("web")));
        assert_ne!(image("web", "1").policy(), image("api", "1").policy());
        assert_eq!(TextHash::of("a\r\nb  \r\n"), TextHash::of("a\nb"));
        assert_ne!(TextHash::of("a\nb"), TextHash::of("a\nc"));
    }
}
