//! Strips the values of some markers from a file.
//!
//! So contents can be compared without them.

use std::borrow::Cow;

use super::marker::{self, Marker};
use super::setter::Setters;
use crate::yaml::{self, Limits, Splice, Visit, Walk, YamlError};

/// Returns a file's content without the values of markers that `setters` do not set.
///
/// Contents that other automations write to as well can be compared so. A content that is not YAML is returned
/// unchanged.
pub fn strip_foreign_markers<'c>(content: &'c [u8], setters: &Setters, limits: &Limits) -> Cow<'c, [u8]> {
    strip_values(content, limits, &|marker| setters.value(marker).is_err())
}

/// Returns a file's content without the values of markers that `is_stripped` selects.
///
/// A content that is not YAML is returned unchanged.
pub fn strip_values<'c>(
    content: &'c [u8],
    limits: &Limits,
    is_stripped: &dyn Fn(&Marker) -> bool,
) -> Cow<'c, [u8]> {
    let Ok(source) = std::str::from_utf8(content) else { return Cow::Borrowed(content) };
    match values(source, limits, is_stripped) {
        Ok(splices) if !splices.is_empty() => Cow::Owned(yaml::apply(source, &splices).into_bytes()),
        Ok(_) | Err(_) => Cow::Borrowed(content),
    }
}

/// Returns the splices that remove the values of selected markers.
fn values(
    source: &str,
    limits: &Limits,
    is_stripped: &dyn Fn(&Marker) -> bool,
) -> Result<Vec<Splice>, YamlError> {
    let mut splices = Vec::new();
    let mut walk = Walk::new(source, limits);
    while let Some(visit) = walk.next_visit()? {
        if let Visit::Value(scalar, Some(comment)) = visit
            && let Ok(marker) = marker::parse(comment.text(source))
            && is_stripped(&marker)
        {
            splices.push(Splice { range: scalar.span, text: String::new() });
        }
    }
    splices.sort_by_key(|splice| splice.range.start);
    Ok(splices)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tagboat_api::ObjectName;

    use super::*;
    use crate::reference::ImageReference;
    use crate::update::PolicyState;

    #[test]
    fn values_of_others_do_not_count() {
        let name = ObjectName { namespace: "n".to_owned(), name: "own".to_owned() };
        let image = PolicyState::Image(ImageReference::parse("app:2").unwrap());
        let setters = Setters::new(BTreeMap::from([(name, image)]));
        let part = |content: &str| {
            let content = content
                .replace("OWN", r#"# {"$imagepolicy": "n:own:tag"}"#)
                .replace("OTHER", r#"# {"$imagepolicy": "n:other:tag"}"#);
            strip_foreign_markers(content.as_bytes(), &setters, &Limits::default()).into_owned()
        };
        for (one, other, is_same) in [
            ("a: v1 OWN\nb: v1 OTHER\n", "a: v1 OWN\nb: \"1.10\" OTHER\n", true),
            ("a: v1 OWN\nb: v1 OTHER\n", "a: v2 OWN\nb: v1 OTHER\n", false),
            ("a: v1 OWN\nb: v1 OTHER\n", "a: v1 OWN\nb:  v1 OTHER\n", false),
            ("a: v1 OWN\nc: d\n", "a: v1 OWN\nc: e\n", false),
            ("a: v1 OTHER\n{", "a: v2 OTHER\n{", false),
        ] {
            assert_eq!(part(one) == part(other), is_same, "{one:?} {other:?}");
        }
        assert_eq!(strip_foreign_markers(b"\xff", &setters, &Limits::default()).as_ref(), b"\xff");
    }
}
