//! The types of the settings of a repository's forge.

use std::str::FromStr;

use super::table::FORGE;

/// The name of a forge; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForgeName(Option<&'static str>);

impl ForgeName {
    /// Returns the name, if there is one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.0
    }
}

impl FromStr for ForgeName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        FORGE.allowed.split(", ").find(|name| *name == text).map(|name| Self(Some(name))).ok_or(())
    }
}

/// The base URL of a forge's API, or its path; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForgeUrl(Option<String>);

impl ForgeUrl {
    /// Returns the text, if there is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Parses a text that begins like a URL or a path.
///
/// Its parts are parsed together with the git URL.
impl FromStr for ForgeUrl {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_start = ["https://", "http://", "/"].iter().any(|start| text.starts_with(start));
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_good = is_start && is_plain && !text.starts_with("//") && text.len() <= 2_048;
        if is_good { Ok(Self(Some(text.to_owned()))) } else { Err(()) }
    }
}

/// The name of the Secret for a forge's API; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForgeSecret(Option<String>);

impl ForgeSecret {
    /// Returns the name, if there is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Parses a name as Kubernetes has it for Secrets.
impl FromStr for ForgeSecret {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(is_inner)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let is_good = text.len() <= 253 && text.split('.').all(is_label);
        if is_good { Ok(Self(Some(text.to_owned()))) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_urls_are_checked() {
        assert_eq!("azure-devops".parse::<ForgeName>().unwrap().name(), Some("azure-devops"));
        for bad in ["", "GitHub", "github, gitlab", "bitbucket-server"] {
            assert_eq!(bad.parse::<ForgeName>(), Err(()), "{bad}");
        }
        for good in ["https://git.example/api/v1", "http://git.example", "/api/v4"] {
            assert_eq!(good.parse::<ForgeUrl>().unwrap().text(), Some(good));
        }
        for bad in ["", "git.example", "ssh://git.example", "//git.example/api", "https://a b", "https://ä"]
        {
            assert_eq!(bad.parse::<ForgeUrl>(), Err(()), "{bad}");
        }
        assert_eq!("forge-token.v2".parse::<ForgeSecret>().unwrap().name(), Some("forge-token.v2"));
        for bad in ["", "Token", "a/b", "-a", "a-", "a..b", &"a".repeat(254)] {
            assert_eq!(bad.parse::<ForgeSecret>(), Err(()), "{bad}");
        }
    }
}
