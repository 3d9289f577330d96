//! The policies of a fuzzed update, and the expected value of each marker.
//!
//! The expected values are computed independently of Tagboat's own code.

use tagboat::reference::ImageReference;
use tagboat::update::{PolicyState, Setters};
use tagboat::yaml::Limits;
use tagboat_api::ObjectName;

/// The number of input bytes that choose the setup; the file begins behind them.
pub(crate) const LENGTH: usize = 3;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The images that a policy may choose: name, tag, and whether there is a digest.
///
/// The bytes of the seeds are letters and index this list, so its order must not change.
const IMAGES: [(&str, &str, bool); 40] = [
    ("podinfo", "6.5.0", false),
    ("ghcr.io/stefanprodan/podinfo", "v6.5.0", true),
    ("localhost:5000/app", "1.10", false),
    ("localhost:5000/app", "1e3", true),
    ("registry.example.com:443/team/app", "0x1F", false),
    ("10.0.0.1:5000/a/b", "on", true),
    ("podinfo", "2024-01-31", false),
    ("ghcr.io/stefanprodan/podinfo", "main-abc1234-1700000000", true),
    ("55", "30", false),
    ("12", "30.5", true),
    ("on", "y", false),
    ("inf", ".nan", false),
    ("a.b", "...", false),
    ("a---b", "---", true),
    ("a--b", "-", false),
    ("[::1]:5000/app", "-x", true),
    ("a.b:/xx", "TRUE", false),
    ("x.-y/aa", "null", true),
    ("aa", "NO", false),
    ("bb", "01", true),
    ("cc", "0777", false),
    ("dd", "0o17", false),
    ("ee", "0b101", true),
    ("ff", "1_000", false),
    ("gg", "685_230.15", false),
    ("hh", "-1", true),
    ("ii", ".5", false),
    ("jj", "1.", false),
    ("kk", "1E-3", true),
    ("ll", "12e4567", false),
    ("ghcr.io/a/b", "1.2.3-rc.1", false),
    ("ghcr.io/a/b", "_1", true),
    ("ghcr.io/a/b", "Off", false),
    ("ghcr.io/a/b", "N", true),
    ("2024-01-31", "1", false),
    ("0x1", "1.0", false),
    ("null", "latest", true),
    ("1:60/aa", "2024-1-3", false),
    ("1.2:3/45", "1.2.3", true),
    ("very/long/name/of/an/image/that/makes/the/line/much/longer/than/it/was/before", "a", false),
];

/// The possible values that some reader parses as a null, bool, number or date.
const NOT_STRINGS: [&str; 37] = [
    "",
    "1.10",
    "1e3",
    "0x1F",
    "on",
    "2024-01-31",
    "55",
    "30",
    "55:30",
    "12",
    "30.5",
    "12:30.5",
    "y",
    ".inf",
    ".nan",
    "TRUE",
    "null",
    "NO",
    "01",
    "0777",
    "0o17",
    "0b101",
    "1_000",
    "685_230.15",
    "-1",
    ".5",
    "1.",
    "1E-3",
    "12e4567",
    "Off",
    "N",
    "1",
    "0x1",
    "1.0",
    "2024-1-3",
    "---",
    "-",
];

/// A policy's image as text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Image {
    name: &'static str,
    tag: &'static str,
    digest: Option<&'static str>,
}

impl Image {
    fn chosen_by(byte: u8) -> Self {
        let (name, tag, has_digest) = IMAGES[usize::from(byte) % IMAGES.len()];
        Self { name, tag, digest: has_digest.then_some(DIGEST) }
    }

    fn policy(self) -> PolicyState {
        let reference = ImageReference::from_parts(self.name, self.tag, self.digest);
        PolicyState::Image(reference.expect("every image of the table is well-formed"))
    }

    fn wanted(self, field: Option<&str>) -> Option<String> {
        let Self { name, tag, digest } = self;
        let at_digest = digest.map(|digest| format!("@{digest}")).unwrap_or_default();
        match field {
            None => Some(format!("{name}:{tag}{at_digest}")),
            Some("tag") => Some(tag.to_owned()),
            Some("name") => Some(name.to_owned()),
            Some("digest") => Some(digest.unwrap_or_default().to_owned()),
            Some("tag@digest") => Some(format!("{tag}{at_digest}")),
            Some(_) => None,
        }
    }
}

/// The setters and limits of one execution.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The images of the policies `a:b` and `c:d`.
    pub(crate) images: [Image; 2],
    /// True if only markers of the namespace `a` count.
    pub(crate) is_restricted: bool,
    /// The setters of `update_file`.
    pub(crate) setters: Setters,
    /// The limits of `update_file`.
    pub(crate) limits: Limits,
}

impl Setup {
    /// Splits an input into the setup that its first bytes choose, and the remaining bytes.
    pub(crate) fn split(input: &[u8]) -> Option<(Self, &[u8])> {
        let (&[first, second, mode], rest) = input.split_first_chunk::<LENGTH>()?;
        let images = [Image::chosen_by(first), Image::chosen_by(second)];
        let policies = [
            ("a", "b", images[0].policy()),
            ("c", "d", images[1].policy()),
            ("a", "none", PolicyState::WithoutImage),
            ("a", "out", PolicyState::NotSelected),
        ];
        let named = policies.map(|(namespace, name, policy)| {
            (ObjectName { namespace: namespace.to_owned(), name: name.to_owned() }, policy)
        });
        let setters = Setters::new(named.into());
        let is_restricted = mode & 1 != 0;
        let setters = if is_restricted { setters.only_for("a".to_owned()) } else { setters };
        let limits = if mode & 4 != 0 { tight_limits() } else { Limits::default() };
        Some((Self { images, is_restricted, setters, limits }, rest))
    }

    /// Returns the target value of the marker `setter`; `None` if the value must stay.
    pub(crate) fn wanted(&self, setter: &str) -> Option<String> {
        let mut parts = setter.splitn(3, ':');
        let image = match (parts.next()?, parts.next()?) {
            ("a", "b") => self.images[0],
            ("c", "d") if !self.is_restricted => self.images[1],
            _ => return None,
        };
        image.wanted(parts.next())
    }
}

/// Returns whether `text` must have quotes to be read as a string by everyone.
pub(crate) fn must_be_quoted(text: &str) -> bool {
    NOT_STRINGS.contains(&text)
}

fn tight_limits() -> Limits {
    Limits { depth: 6, alias_nodes: 20, comment_length: 200, comment_run: 4, ..Limits::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every image of the table is a valid image reference.
    ///
    /// Formerly, two targets ended at once for days, because their table held names that the parser had come
    /// to refuse.
    #[test]
    fn every_image_of_the_table_is_one() {
        for byte in 0..40 {
            let Image { name, tag, digest } = Image::chosen_by(byte);
            let parsed = ImageReference::from_parts(name, tag, digest);
            assert!(parsed.is_ok(), "{name}:{tag}: {parsed:?}");
        }
    }
}
