//! The types of the settings of branches and pull requests.

use std::str::FromStr;

/// The way by which commits reach the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivery {
    /// They are pushed to the push branch, as in Flux.
    #[default]
    Push,
    /// They are pushed to fresh branches, and others open pull requests.
    Branch,
    /// They are pushed to fresh branches that have pull requests.
    PullRequest,
}

impl FromStr for Delivery {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "push" => Ok(Self::Push),
            "branch" => Ok(Self::Branch),
            "pull-request" => Ok(Self::PullRequest),
            _ => Err(()),
        }
    }
}

/// A text, such as a template; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingText(Option<String>);

impl SettingText {
    /// Returns the text, if there is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Parses any text but white space.
impl FromStr for SettingText {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text.trim().is_empty() { Err(()) } else { Ok(Self(Some(text.to_owned()))) }
    }
}

/// A list of labels, users or teams, without repetitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameList(Vec<String>);

impl NameList {
    /// The maximum number of names.
    const MAX_NAMES: usize = 50;

    /// The maximum length of a name, in bytes.
    const MAX_LENGTH: usize = 255;

    /// Returns the names in their order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

/// Parses a YAML list of texts, in which `1.10` and `true` are texts too.
impl FromStr for NameList {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim();
        let is_list = text.starts_with('[') || text.starts_with("- ");
        let names: Vec<String> =
            if is_list { serde_saphyr::from_str(text).map_err(|_| ())? } else { return Err(()) };
        let is_name = |name: &String| {
            let is_plain = !name.chars().any(char::is_control);
            is_plain && name.trim() == name && (1..=Self::MAX_LENGTH).contains(&name.len())
        };
        if names.len() > Self::MAX_NAMES || !names.iter().all(is_name) {
            return Err(());
        }
        let mut unique: Vec<String> = Vec::new();
        for name in names {
            if !unique.contains(&name) {
                unique.push(name);
            }
        }
        Ok(Self(unique))
    }
}

/// The label by which people hand the branch of a pull request back to Tagboat.
pub const REBUILD_LABEL: &str = "tagboat/rebuild";

/// The labels of a new pull request.
///
/// [`REBUILD_LABEL`] is not one of them: with it, the first commit of a person on the branch would be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelList(NameList);

impl LabelList {
    /// Returns the labels in their order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        self.0.names()
    }
}

/// Parses a YAML list of texts.
impl FromStr for LabelList {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let labels: NameList = text.parse()?;
        // Some forges compare labels without case.
        let has_own = labels.names().iter().any(|label| label.eq_ignore_ascii_case(REBUILD_LABEL));
        if has_own { Err(()) } else { Ok(Self(labels)) }
    }
}

/// The time at which a pull request is merged, in the order of caution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MergeTime {
    /// People merge it.
    #[default]
    ByHand,
    /// The forge merges it once the required checks and approvals are there.
    WhenReady,
    /// It is merged without waiting.
    Immediately,
}

impl FromStr for MergeTime {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "by-hand" => Ok(Self::ByHand),
            "when-ready" => Ok(Self::WhenReady),
            "immediately" => Ok(Self::Immediately),
            _ => Err(()),
        }
    }
}

/// The method of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MergeMethod {
    /// The default of the forge.
    #[default]
    OfForge,
    /// A merge commit.
    Commit,
    /// One commit with all changes.
    Squash,
    /// The commits, on top of the base.
    Rebase,
}

impl FromStr for MergeMethod {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "commit" => Ok(Self::Commit),
            "squash" => Ok(Self::Squash),
            "rebase" => Ok(Self::Rebase),
            _ => Err(()),
        }
    }
}

/// The rule for rebuilding a branch on a newer base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refresh {
    /// It is rebuilt if its change differs.
    ///
    /// It is rebuilt too if the base has another content of a file that it changes.
    #[default]
    WhenNeeded,
    /// It is rebuilt whenever the base moves.
    Always,
}

impl FromStr for Refresh {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "when-needed" => Ok(Self::WhenNeeded),
            "always" => Ok(Self::Always),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_texts_in_any_yaml_style() {
        for (value, names) in [
            ("[]", &[][..]),
            ("[a, 'b: c', 1.10, true]", &["a", "b: c", "1.10", "true"]),
            ("- ann\n- acme/web\n- ann\n", &["ann", "acme/web"]),
            (" [ä] ", &["ä"]),
        ] {
            let read: NameList = value.parse().expect(value);
            assert_eq!(read.names(), names, "{value}");
        }
        let many = format!("[{}]", "a, ".repeat(51));
        let long = format!("[{}]", "a".repeat(256));
        for value in [
            "",
            "a",
            "a, b",
            "[a",
            "[[a]]",
            "{a: b}",
            "['']",
            "[' a']",
            "[\"a\\nb\"]",
            "[null]",
            &many,
            &long,
        ] {
            assert_eq!(value.parse::<NameList>(), Err(()), "{value}");
        }
    }

    /// The first commit of a person on the new branch was lost.
    #[test]
    fn the_label_that_hands_a_branch_back_is_no_label_of_a_new_pull_request() {
        assert_eq!("[images]".parse::<LabelList>().unwrap().names(), ["images"]);
        for value in ["[images, tagboat/rebuild]", "- Tagboat/Rebuild", "images"] {
            assert_eq!(value.parse::<LabelList>(), Err(()), "{value}");
        }
    }

    #[test]
    fn the_most_cautious_time_of_a_merge_is_the_least() {
        assert!(MergeTime::ByHand < MergeTime::WhenReady && MergeTime::WhenReady < MergeTime::Immediately);
        assert_eq!("".parse::<SettingText>(), Err(()));
        assert_eq!(" \n".parse::<SettingText>(), Err(()));
    }
}
