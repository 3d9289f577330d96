//! The templates included in the program, by name.

use super::error::TemplateErrorKind;

/// The prefix of a template that names a preset.
const PREFIX: &str = "preset:";

/// A template included in the program, in Go's language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name after `preset:`.
    pub name: &'static str,
    /// A short description of its messages.
    pub summary: &'static str,
    /// The template.
    pub text: &'static str,
}

const PRESETS: [Preset; 3] = [
    Preset {
        name: "detailed",
        summary: "the automation, then each file with its objects and their changes",
        text: include_str!("../../templates/commit/detailed.tmpl"),
    },
    Preset {
        name: "conventional",
        summary: "a conventional commit: chore(AUTOMATION): update IMAGE to TAG, with the changes and a footer",
        text: include_str!("../../templates/commit/conventional.tmpl"),
    },
    Preset {
        name: "summary",
        summary: "one line with counts, then the automation and the images as trailers",
        text: include_str!("../../templates/commit/summary.tmpl"),
    },
];

/// All presets.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// Returns the preset if the whole template is the name of one.
///
/// # Errors
///
/// Returns an error if there is no preset of this name.
pub(super) fn named_by(text: &str) -> Result<Option<&'static Preset>, TemplateErrorKind> {
    let Some(name) = text.trim().strip_prefix(PREFIX) else { return Ok(None) };
    if name.contains(char::is_whitespace) || name.contains("{{") {
        return Ok(None);
    }
    match PRESETS.iter().find(|preset| preset.name == name) {
        Some(preset) => Ok(Some(preset)),
        None => {
            let known = PRESETS.map(|preset| format!("preset:{}", preset.name)).join(", ");
            Err(TemplateErrorKind::UnknownPreset { name: name.to_owned(), known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_named_by_a_whole_template() {
        for preset in presets() {
            let named = named_by(&format!(" preset:{}\n", preset.name)).unwrap();
            assert_eq!(named, Some(preset));
        }
        for text in [
            "",
            "preset",
            "preset: summary",
            "use preset:summary",
            "preset:summary\nand more",
            "preset:{{ .x }}",
        ] {
            assert_eq!(named_by(text).unwrap(), None, "{text:?}");
        }
    }

    #[test]
    fn the_error_of_an_unknown_preset_lists_the_presets() {
        for name in ["", "sumary", "Summary"] {
            let error = named_by(&format!("preset:{name}")).unwrap_err();
            let message = format!(
                "there is no preset {name:?}; there are preset:detailed, preset:conventional, preset:summary"
            );
            assert_eq!(error.to_string(), message);
        }
    }
}
