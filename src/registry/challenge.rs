//! Parses login challenges: the header `WWW-Authenticate`.

/// A login that a registry accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// User and password with every request.
    Basic,
    /// A token of another server.
    Bearer(Bearer),
}

/// The parameters of a bearer challenge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bearer {
    /// The address of the token server, as it was written.
    pub realm: String,
    /// The name of the registry at the token server.
    pub service: Option<String>,
    /// The scope that the token must grant.
    pub scope: Option<String>,
}

impl Challenge {
    /// Chooses among the challenges of the header's values.
    ///
    /// A token comes before a password, which then goes to one server only; of several of one kind the first counts.
    pub fn choose<'h>(headers: impl IntoIterator<Item = &'h str>) -> Option<Self> {
        let known: Vec<Self> = headers.into_iter().flat_map(read).filter_map(Self::known).collect();
        let token =
            known.iter().find(|known| matches!(known, Self::Bearer(bearer) if !bearer.realm.is_empty()));
        token.or(known.first()).cloned()
    }

    /// Returns the names of the offered schemes, if all of them are unknown.
    pub fn unknown<'h>(headers: impl IntoIterator<Item = &'h str>) -> Vec<String> {
        let challenges: Vec<AuthChallenge<'h>> = headers.into_iter().flat_map(read).collect();
        let names: Vec<String> = challenges.iter().map(|challenge| challenge.scheme.to_owned()).collect();
        if challenges.into_iter().any(|challenge| Self::known(challenge).is_some()) {
            Vec::new()
        } else {
            names
        }
    }

    fn known(challenge: AuthChallenge<'_>) -> Option<Self> {
        if challenge.scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !challenge.scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let mut bearer = Bearer::default();
        for (name, value) in challenge.parameters {
            match name.to_ascii_lowercase().as_str() {
                "realm" => bearer.realm = value,
                "service" => bearer.service = Some(value),
                "scope" => bearer.scope = Some(value),
                _ => {}
            }
        }
        Some(Self::Bearer(bearer))
    }
}

/// One challenge of a `WWW-Authenticate` header, known or not.
#[derive(Debug)]
struct AuthChallenge<'h> {
    scheme: &'h str,
    parameters: Vec<(&'h str, String)>,
}

/// Parses one value of the header, which may contain several challenges (RFC 9110, section 11.6.1).
///
/// A comma separates both challenges and the parameters of one: a word is a parameter's name if a `=` with a value
/// follows, and otherwise begins the next challenge. Invalid parts are skipped.
fn read(header: &str) -> Vec<AuthChallenge<'_>> {
    let mut challenges: Vec<AuthChallenge<'_>> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let Some(first) = rest.chars().next() else { return challenges };
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if end == 0 {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let word = &rest[..end];
        rest = &rest[end..];
        let behind = rest.trim_start_matches([' ', '\t']);
        let value = behind.strip_prefix('=').map(|value| value.trim_start_matches([' ', '\t']));
        match (value, challenges.last_mut()) {
            (Some(value), Some(challenge)) => {
                let (value, left) = read_value(value);
                challenge.parameters.push((word, value));
                rest = left;
            }
            (Some(value), None) => rest = read_value(value).1,
            (None, _) => challenges.push(AuthChallenge { scheme: word, parameters: Vec::new() }),
        }
    }
}

/// Parses a value, quoted or not, and returns the rest of the text.
fn read_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            character => value.push(character),
        }
    }
    (value, "")
}

/// Returns `true` for characters of a token, or of credentials such as `Negotiate YII/+`.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Option<Challenge> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Some(Challenge::Bearer(Bearer {
            realm: realm.to_owned(),
            service: owned(service),
            scope: owned(scope),
        }))
    }

    #[test]
    fn a_token_is_taken_before_a_password() {
        let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/alpine:pull""#;
        let scope = Some("repository:library/alpine:pull");
        for (headers, expected) in [
            (&[hub][..], bearer("https://auth.docker.io/token", Some("registry.docker.io"), scope)),
            (&["Basic realm=\"Registry, and \\\"more\\\"\""], Some(Challenge::Basic)),
            (&["basic"], Some(Challenge::Basic)),
            (&["BEARER Realm=https://t/x, SERVICE=a"], bearer("https://t/x", Some("a"), None)),
            (&["Bearer realm = \"https://t\" , service = \"s\""], bearer("https://t", Some("s"), None)),
            (&["Negotiate", "Basic realm=x"], Some(Challenge::Basic)),
            (&["Negotiate YII/+==, Bearer realm=\"https://t\""], bearer("https://t", None, None)),
            (&["Basic realm=\"a\", Bearer realm=\"b\""], bearer("b", None, None)),
            (&["Basic realm=\"a\"", "Bearer realm=\"b\",service=\"s\""], bearer("b", Some("s"), None)),
            (&["Basic realm=\"a\", Bearer"], Some(Challenge::Basic)),
            (&["Bearer realm=\"b\", Basic realm=\"a\""], bearer("b", None, None)),
            (&["Bearer realm=\"b\",scope=\"x\",error=\"insufficient_scope\""], bearer("b", None, Some("x"))),
            (&["Bearer realm=\"b\\\\c\\d\""], bearer("b\\cd", None, None)),
            (&["Bearer realm=\"never closed, x=y"], bearer("never closed, x=y", None, None)),
            (&["Bearer"], bearer("", None, None)),
            (&["Digest realm=\"x\", qop=\"auth\""], None),
            (&["realm=\"x\""], None),
            (&["", " , ,", "\"", "="], None),
            (&[], None),
        ] {
            assert_eq!(Challenge::choose(headers.iter().copied()), expected, "{headers:?}");
        }
    }

    #[test]
    fn unknown_schemes_are_named() {
        for (headers, names) in [
            (&["Negotiate"][..], &["Negotiate"][..]),
            (
                &["Negotiate YII/+==, NTLM", "Digest realm=\"x\", qop=\"auth\""],
                &["Negotiate", "NTLM", "Digest"],
            ),
            (&["Negotiate", "Basic realm=x"], &[]),
            (&[""], &[]),
        ] {
            assert_eq!(Challenge::unknown(headers.iter().copied()), names, "{headers:?}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read(header in "([a-zA-Z]{1,8}|[ ,=\"\\\\]|\\PC){0,30}") {
            let _ = Challenge::choose([header.as_str()]);
        }

        #[test]
        fn quoted_parameters_round_trip(realm in "\\PC{0,20}", service in "\\PC{0,20}") {
            let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let header = format!("Bearer realm=\"{}\",service=\"{}\"", quoted(&realm), quoted(&service));
            prop_assert_eq!(Challenge::choose([header.as_str()]), bearer(&realm, Some(&service), None));
        }
    }
}
