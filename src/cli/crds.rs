//! `tagboat crds`: the CustomResourceDefinitions.

use std::path::PathBuf;

use clap::Args;
use tagboat_api::crds::CrdFile;

use super::Failure;
use super::terminal::print;

/// Print the CustomResourceDefinitions of the kinds that Tagboat serves
///
/// In clusters where Flux is installed they are Flux's to apply.
#[derive(Debug, Args)]
pub(super) struct CrdsArguments {
    /// Write them as files below DIR instead
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
}

pub(super) fn run(arguments: &CrdsArguments) -> Result<(), Failure> {
    let files = tagboat_api::crds::files();
    let Some(directory) = &arguments.write else {
        let texts: Vec<String> = files.into_iter().map(|file| file.text).collect();
        return Ok(print(&texts.concat())?);
    };
    for CrdFile { path, text } in files {
        let path = directory.join(path);
        let written =
            path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(())
}
