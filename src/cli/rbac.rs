//! `tagboat rbac`: the roles of the controller.

use std::path::PathBuf;

use clap::Args;

use super::Failure;
use super::terminal::print;
use crate::permissions::{self, RoleFile};

/// Print the roles that the controller needs, each rule with its reason
///
/// Where Tagboat takes the place of Flux's image controllers, theirs will do.
#[derive(Debug, Args)]
pub(super) struct RbacArguments {
    /// Write them below DIR instead, also as templates of the chart
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,

    /// The selector of `tagboat controller --watch-label-selector`, on which the names of the Leases depend
    #[arg(long, value_name = "SELECTOR")]
    watch_label_selector: Option<String>,
}

pub(super) fn run(arguments: &RbacArguments) -> Result<(), Failure> {
    let selector = arguments.watch_label_selector.as_deref().filter(|text| !text.is_empty());
    let files = permissions::files(selector);
    let Some(directory) = &arguments.write else {
        let plain = files.iter().filter(|file| file.path.starts_with("rbac/"));
        let texts: Vec<&str> = plain.map(|file| file.text.as_str()).collect();
        return Ok(print(&texts.join("---\n"))?);
    };
    for RoleFile { path, text } in files {
        let path = directory.join(path);
        let written =
            path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(())
}
