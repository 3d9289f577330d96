//! Checks markers against the policies among the files.

use std::collections::BTreeMap;

use tagboat_api::ObjectName;

use super::finding::{Findings, Location, Rule, hint};
use super::policy_names::PolicyNames;
use super::source::{Document, NEAR_TOKENS};
use crate::reference::ImageReference;
use crate::update::file::{FileOutcome, update_file};
use crate::update::marker::{self, Field, Marker, MarkerError};
use crate::update::{MarkerOutcome, PolicyState, Setters};
use crate::yaml::{Limits, YamlError};

/// The fields that a marker can name.
const FIELDS: [&str; 4] = ["tag", "name", "digest", "tag@digest"];

/// An image for checking markers: with its digest, each part has its longest text.
const SAMPLE: &str = "registry.example.com/sample:1.0.0@sha256:\
                      0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The markers of a file, and the findings that do not depend on policies.
#[derive(Debug, Default)]
pub(super) struct Markers {
    /// Each parsed marker, with its line and whether it has a value there.
    pub(super) found: Vec<Found>,
    near_misses: Vec<(usize, MarkerError)>,
}

/// A marker in a file.
#[derive(Debug)]
pub(super) struct Found {
    line: usize,
    pub(super) marker: Marker,
    is_placed: bool,
}

impl Markers {
    /// Reads the markers of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file has markers but is not YAML.
    pub(super) fn read(document: &Document<'_>, limits: &Limits) -> Result<Self, YamlError> {
        if !document.has_marker() {
            let lines = marker::lines_without_quotes(document.text.as_bytes());
            let near_misses = lines.into_iter().map(|line| (line, MarkerError::NoQuotes)).collect();
            return Ok(Self { found: Vec::new(), near_misses });
        }
        // A trial update shows whether a value fits: every named policy has an image in it.
        let named = update_file(document.text.as_bytes(), &Setters::default(), None, limits)?;
        let setters = sample_setters(&named);
        let FileOutcome { markers, near_misses, .. } =
            update_file(document.text.as_bytes(), &setters, None, limits)?;
        let found = markers
            .into_iter()
            .map(|found| Found {
                line: found.line,
                is_placed: found.outcome != MarkerOutcome::NotOnScalar,
                marker: found.marker,
            })
            .collect();
        Ok(Self { found, near_misses })
    }

    /// Finds markers in the lines of a file that is not YAML.
    pub(super) fn guess(document: &Document<'_>) -> Vec<Marker> {
        let comments =
            document.text.lines().flat_map(|line| line.match_indices('#').map(|(at, _)| &line[at..]));
        comments.filter_map(|comment| marker::parse(comment).ok()).collect()
    }

    /// Checks each marker.
    pub(super) fn check(&self, document: &Document<'_>, names: &PolicyNames, findings: &mut Findings<'_>) {
        let lines: Vec<&str> = document.text.lines().collect();
        let line_of = |line: usize| lines.get(line - 1).copied().unwrap_or_default();
        for Found { line, marker, is_placed } in &self.found {
            let column = column(line_of(*line), |comment| {
                marker::parse(comment).is_ok_and(|found| found.setter == marker.setter)
            });
            let location = Location { line: *line, column };
            if let Some(sentence) = policy_error(marker, names) {
                findings.add(location, Rule::UnknownPolicy, sentence);
            }
            if marker.field == Field::Unknown {
                findings.add(location, Rule::UnknownMarkerField, field_error(marker));
            }
            if !is_placed {
                let warning = MarkerOutcome::NotOnScalar.warning().unwrap_or_default();
                findings.add(
                    location,
                    Rule::MisplacedMarker,
                    format!("marker `{}`: {warning}", marker.setter),
                );
            }
        }
        for (number, line) in lines.iter().enumerate() {
            if let Some((column, token)) = misspelled(line) {
                let sentence = format!("the comment is not a marker: {token} must be \"{}\"", marker::TOKEN);
                findings.add(Location { line: number + 1, column }, Rule::MalformedMarker, sentence);
            }
        }
        for (line, cause) in &self.near_misses {
            if is_commented_out(line_of(*line)) {
                continue;
            }
            let column = column(line_of(*line), |comment| comment.contains(marker::TOKEN));
            let location = Location { line: *line, column };
            findings.add(location, Rule::MalformedMarker, format!("the comment is not a marker: {cause}"));
        }
    }
}

/// Finds a comment that would be a marker if its token were spelt correctly.
///
/// Returns its column and the token. A line that is a comment as a whole may be an example.
fn misspelled(line: &str) -> Option<(usize, &'static str)> {
    let token = NEAR_TOKENS.into_iter().find(|token| line.contains(token))?;
    let is_begun = |at: &usize| line[..*at].ends_with([' ', '\t']) && !line[..*at].trim().is_empty();
    let mut comments = line.match_indices('#').map(|(at, _)| at).filter(is_begun);
    let right = |at: &usize| line[*at..].replacen(token, "\"$imagepolicy\"", 1);
    let at = comments.find(|at| {
        let is_setter = |marker: Marker| marker.setter.contains(':');
        line[*at..].contains(token) && marker::parse(&right(at)).is_ok_and(is_setter)
    })?;
    let is_commented_out = line.trim_start().starts_with('#');
    (!is_commented_out).then(|| (line[..at].chars().filter(|c| *c != '\u{feff}').count() + 1, token))
}

/// Returns true if a line with a value and its marker is commented out.
fn is_commented_out(line: &str) -> bool {
    let Some(comment) = line.trim_start_matches([' ', '\t', '\u{feff}']).strip_prefix('#') else {
        return false;
    };
    let comment = comment.trim_start_matches('#').trim_start();
    let is_content =
        |text: &str| text.starts_with("- ") || text.contains(": ") || text.trim_end().ends_with(':');
    let mut inner = comment.match_indices('#').map(|(at, _)| at);
    inner.any(|at| is_content(&comment[..at]) && marker::parse(&comment[at..]).is_ok())
}

/// The column of the first comment that satisfies a predicate.
fn column(line: &str, is_it: impl Fn(&str) -> bool) -> usize {
    let mut comments = line.match_indices('#').map(|(at, _)| at);
    let at = comments.find(|at| {
        let begins = line[..*at].is_empty() || line[..*at].ends_with([' ', '\t', '\u{feff}']);
        begins && is_it(&line[*at..])
    });
    at.map_or(1, |at| line[..at].chars().filter(|c| *c != '\u{feff}').count() + 1)
}

fn sample_setters(outcome: &FileOutcome) -> Setters {
    let image = ImageReference::parse(SAMPLE).expect("the sample is an image with tag and digest");
    let policy = |policy: &ObjectName| (policy.clone(), PolicyState::Image(image.clone()));
    let policies: BTreeMap<_, _> = outcome.markers.iter().map(|found| policy(&found.marker.policy)).collect();
    Setters::new(policies)
}

fn policy_error(marker: &Marker, names: &PolicyNames) -> Option<String> {
    let Marker { setter, policy, .. } = marker;
    if policy.name.is_empty() || policy.namespace.is_empty() {
        let hint = names.nearest(policy).map_or_else(
            || "; markers name a policy as NAMESPACE:NAME".to_owned(),
            |nearest| hint(Some(&nearest)),
        );
        return Some(format!("marker `{setter}` names no policy{hint}"));
    }
    if names.contains(policy) {
        return None;
    }
    let hint = hint(names.nearest(policy).as_deref());
    Some(format!("marker `{setter}`: there is no ImagePolicy {policy} among the files{hint}"))
}

fn field_error(marker: &Marker) -> String {
    let field = marker.setter.splitn(3, ':').nth(2).unwrap_or_default();
    let near = tagboat_api::nearest::nearest(field, FIELDS)
        .or_else(|| FIELDS.into_iter().find(|known| known.eq_ignore_ascii_case(field)));
    let hint = hint(near);
    format!(
        "marker `{}` names the field `{field}`, which images do not have; there are {}, or nothing for the whole \
         reference{hint}",
        marker.setter,
        FIELDS.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::{column, is_commented_out, misspelled};

    #[test]
    fn a_token_that_is_spelt_otherwise_is_seen_behind_values_only() {
        for (line, expected) in [
            (r##"image: app:1.0 # {"$imagePolicy": "a:b"}"##, Some((16, r#""$imagePolicy""#))),
            (r##"  tag: "1" # {"imagepolicy": "a:b:tag"}"##, Some((12, r#""imagepolicy""#))),
            (r##"# image: app:1.0 # {"imagepolicy": "a:b"}"##, None),
            (r##"# {"imagepolicy": "a:b"}"##, None),
            (r##"json: '{"imagePolicy": "Always"}'"##, None),
            (r##"image: app # {"imagePolicy": "Always"}"##, None),
            (r##"image: app # see {"imagePolicy": "a:b"}"##, None),
            (r##"image: app#{"imagePolicy": "a:b"}"##, None),
            (r##"image: app # {"$imagepolicy": "a:b"}"##, None),
        ] {
            assert_eq!(misspelled(line), expected, "{line}");
        }
    }

    #[test]
    fn commented_out_lines_are_recognized() {
        for (line, expected) in [
            (r##"  # image: app:1.0 # {"$imagepolicy": "a:b"}"##, true),
            (r##"#- app:1.0 # {"$imagepolicy": "a:b"}"##, true),
            (r##"# tag: # {"$imagepolicy": "a:b:tag"}"##, true),
            (r##"image: app:1.0 # pinned: no # {"$imagepolicy": "a:b"}"##, false),
            (r##"# see {"$imagepolicy": "a:b"}"##, false),
            (r##"# image: app:1.0 # {"$imagepolicy": "a:b"} # x"##, false),
        ] {
            assert_eq!(is_commented_out(line), expected, "{line}");
        }
    }

    #[test]
    fn the_comment_is_found_on_its_line() {
        let is_marker = |comment: &str| comment.starts_with("# {");
        assert_eq!(column("image: \"a#b # c\" # {x}", is_marker), 18);
        assert_eq!(column("ä: b # {x}", is_marker), 6);
        assert_eq!(column("\u{feff}# {x}", is_marker), 1);
        assert_eq!(column("# none", is_marker), 1);
    }
}
