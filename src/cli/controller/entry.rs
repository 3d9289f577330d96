//! Flux's own argument lists, as a Deployment of Flux gives them to the image's entry point.

use std::ffi::OsString;

use super::flags;

/// The subcommand that a list of the controller's flags stands for.
const SUBCOMMAND: &str = "controller";

/// The arguments as our command line has them: flags of the controller without a subcommand are its, and one dash
/// before the name of one is as good as two, as it is in Go.
pub(in crate::cli) fn understood(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|first| flag_name(first).is_some()) {
        arguments.insert(1, SUBCOMMAND.into());
    }
    if arguments.get(1).is_some_and(|first| first == SUBCOMMAND) {
        for argument in arguments.iter_mut().skip(2) {
            let text = argument.to_str().unwrap_or_default();
            if flag_name(argument).is_some() && !text.starts_with("--") {
                *argument = format!("-{text}").into();
            }
        }
    }
    arguments
}

/// The name of the controller's flag that an argument gives, if it does.
fn flag_name(argument: &OsString) -> Option<&str> {
    let text = argument.to_str()?.strip_prefix('-')?;
    let text = text.strip_prefix('-').unwrap_or(text);
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    flags::find(name).map(|_| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_flags_stands_for_the_controller() {
        for (given, expected) in [
            (
                "tagboat --watch-all-namespaces --log-level=info",
                "tagboat controller --watch-all-namespaces --log-level=info",
            ),
            ("tagboat -log-level=info -concurrent 2", "tagboat controller --log-level=info --concurrent 2"),
            (
                "tagboat controller -enable-leader-election=false",
                "tagboat controller --enable-leader-election=false",
            ),
            ("tagboat --help", "tagboat --help"),
            ("tagboat -h", "tagboat -h"),
            ("tagboat --version", "tagboat --version"),
            ("tagboat run -x --state=a", "tagboat run -x --state=a"),
            ("tagboat --nonsense", "tagboat --nonsense"),
            ("tagboat", "tagboat"),
        ] {
            let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(understood(words(given)), words(expected), "{given}");
        }
    }
}
