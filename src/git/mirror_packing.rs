//! What a mirror keeps of what was fetched, and packing it.

use std::fs;
use std::io::{self, Write};

use super::capacity::ServerDeadline;
use super::command::GitError;
use super::commit::stated_parents;
use super::mirror::{Mirror, MirrorError};
use super::mirror_files::{REPOSITORY, SHALLOW, packs};
use super::name::CommitId;
use super::object::{self, ObjectError};
use super::remote::TRANSFER_MEMORY;

/// References that keep fetched commits from being pruned stand below this.
const KEPT: &str = "refs/tagboat/";

/// More lines than this in git's list of cut-off commits make every fetch slow.
const SHALLOW_LINES: usize = 64;

/// More packs than this make looking for an object slow.
const PACKS: usize = 64;

/// Why a mirror could not be packed.
#[derive(Debug, thiserror::Error)]
enum PackError {
    #[error(transparent)]
    Objects(#[from] git2::Error),
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Mirror {
    /// The name under which a fetched commit is kept.
    pub(super) fn kept_name(commit: CommitId) -> String {
        format!("{KEPT}{commit}")
    }

    /// Keeps `commits`, those of them that are here, and lets go of all others.
    pub(super) fn keep(&self, commits: &[CommitId]) -> Result<(), git2::Error> {
        let wanted: Vec<String> = commits.iter().map(|commit| Self::kept_name(*commit)).collect();
        let mut kept = Vec::new();
        for reference in self.repository().references_glob(&format!("{KEPT}*"))? {
            let mut reference = reference?;
            match wanted.iter().position(|wanted| wanted.as_bytes() == reference.name_bytes()) {
                Some(place) => kept.push(place),
                None => reference.delete()?,
            }
        }
        for (place, commit) in commits.iter().enumerate().filter(|(place, _)| !kept.contains(place)) {
            if self.has(*commit) {
                self.repository().reference(&wanted[place], commit.oid(), true, "")?;
            }
        }
        Ok(())
    }

    /// Packs the mirror and prunes what is not kept, where it has become slow; one that cannot be packed is begun
    /// anew.
    ///
    /// # Errors
    ///
    /// When the file system refuses.
    pub(super) fn tidy(&mut self, deadline: &ServerDeadline) -> Result<(), MirrorError> {
        let place = self.folder().join(REPOSITORY);
        let shallow = fs::read(place.join(SHALLOW)).unwrap_or_default();
        let lines = shallow.iter().filter(|&&byte| byte == b'\n').count();
        let has_few_packs = packs(&place) <= PACKS;
        if lines <= SHALLOW_LINES && has_few_packs {
            return Ok(());
        }
        let Ok(kept) = self.kept() else { return self.begin_anew() };
        // What is kept needs a line each in any case.
        if lines <= SHALLOW_LINES + kept.len() && has_few_packs {
            return Ok(());
        }
        match self.pack(&kept, deadline) {
            Ok(()) => Ok(()),
            Err(_) => self.begin_anew(),
        }
    }

    /// The commits that are kept.
    fn kept(&self) -> Result<Vec<CommitId>, ObjectError> {
        let mut kept = Vec::new();
        for reference in self.repository().references_glob(&format!("{KEPT}*"))? {
            if let Some(target) = reference?.target() {
                kept.push(self.peel(target.into())?);
            }
        }
        Ok(kept)
    }

    fn pack(&self, kept: &[CommitId], deadline: &ServerDeadline) -> Result<(), PackError> {
        // Of commits made here the parents are here too, and would be for good: cut them off as a fetch does.
        let mut shallow = tempfile::Builder::new().prefix("tmp_").tempfile_in(self.folder())?;
        let objects = self.repository().odb()?;
        for commit in kept {
            if !stated_parents(object::read_commit(&objects, *commit)?.data()).is_empty() {
                writeln!(shallow, "{commit}")?;
            }
        }
        shallow.persist(self.folder().join(REPOSITORY).join(SHALLOW)).map_err(|error| error.error)?;
        // What nothing that is kept leads to is left out.
        self.git()
            .call("repack")
            .arguments(["-a", "-d", "-q"])
            .slot(self.slot())
            .memory(TRANSFER_MEMORY)
            .deadline(deadline)
            .run()?;
        Ok(())
    }
}
