//! Argument lists of Flux, as its Deployments have them.

use std::ffi::OsString;

use super::flags;

/// The subcommand that flags of the controller imply.
const SUBCOMMAND: &str = "controller";

/// Returns the arguments in the form of our command line.
///
/// Flags of the controller without a subcommand get the subcommand, and a single dash before their names becomes two, as
/// Go accepts both.
pub(in crate::cli) fn normalize_args(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
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

/// Returns the name of the controller's flag in an argument, if it is one.
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
    fn flags_of_the_controller_imply_its_subcommand() {
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
            let split_arguments = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(normalize_args(split_arguments(given)), split_arguments(expected), "{given}");
        }
    }
}
