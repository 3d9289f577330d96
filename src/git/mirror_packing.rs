//! Keeps the commits of a mirror that the next runs build on, and packs it.

use std::io::{self, Write};

use super::command::GitError;
use super::commit::stated_parents;
use super::mirror::Mirror;
use super::mirror_error::MirrorError;
use super::mirror_files::{REPOSITORY, SHALLOW, packs};
use super::name::CommitId;
use super::object::{self, ObjectError};
use super::remote::TRANSFER_MEMORY;
use super::server_deadline::ServerDeadline;
use crate::directory;

/// The prefix of references that keep fetched commits from being pruned.
const KEPT: &str = "refs/tagboat/";

/// More lines than this in git's list of cut-off commits make every fetch slow.
const SHALLOW_LINES: usize = 64;

/// More packs than this make looking for an object slow.
const PACKS: usize = 64;

/// The error of a mirror that could not be packed.
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
    /// Returns the reference that keeps a fetched commit.
    pub(super) fn kept_name(commit: CommitId) -> String {
        format!("{KEPT}{commit}")
    }

    /// Returns true if a commit is here without its parents.
    pub(super) fn is_cut_off(&self, commit: CommitId) -> bool {
        let lines = directory::read(&self.folder.join(REPOSITORY).join(SHALLOW)).unwrap_or_default();
        let commit = commit.to_string();
        lines.split(|&byte| byte == b'\n').any(|line| line == commit.as_bytes())
    }

    /// Keeps those of `commits` that are here, and no others.
    pub(super) fn keep(&self, commits: &[CommitId]) -> Result<(), git2::Error> {
        let names: Vec<String> = commits.iter().map(|commit| Self::kept_name(*commit)).collect();
        let mut kept = Vec::new();
        for reference in self.repository.references_glob(&format!("{KEPT}*"))? {
            let mut reference = reference?;
            match names.iter().position(|name| name.as_bytes() == reference.name_bytes()) {
                Some(index) => kept.push(index),
                None => reference.delete()?,
            }
        }
        for (index, commit) in commits.iter().enumerate().filter(|(index, _)| !kept.contains(index)) {
            if self.has(*commit) {
                self.repository.reference(&names[index], commit.oid(), true, "")?;
            }
        }
        Ok(())
    }

    /// Removes a commit from git's list of cut-off commits, because its parents are here.
    ///
    /// A server refuses a push of a commit in this list.
    pub(super) fn join_to_parents(&self, commit: CommitId) -> io::Result<()> {
        let folder = self.folder.join(REPOSITORY);
        let (shallow, line) =
            (directory::read(&folder.join(SHALLOW)).unwrap_or_default(), commit.to_string());
        let mut rest = tempfile::Builder::new().prefix("tmp_").tempfile_in(&self.folder)?;
        for other in shallow
            .split_inclusive(|&byte| byte == b'\n')
            .filter(|other| other.trim_ascii() != line.as_bytes())
        {
            rest.write_all(other)?;
        }
        rest.persist(folder.join(SHALLOW)).map_err(|error| error.error)?;
        Ok(())
    }

    /// Packs the mirror and prunes all other objects if it has become slow.
    ///
    /// A mirror that cannot be packed is created anew. Without free memory, or when all work is being
    /// stopped, it is left to a later transaction.
    ///
    /// # Errors
    ///
    /// If the file system refuses.
    pub(super) fn repack(&mut self, deadline: &ServerDeadline) -> Result<(), MirrorError> {
        let folder = self.folder.join(REPOSITORY);
        let shallow = directory::read(&folder.join(SHALLOW)).unwrap_or_default();
        let lines = shallow.iter().filter(|&&byte| byte == b'\n').count();
        let has_few_packs = packs(&folder) <= PACKS;
        if lines <= SHALLOW_LINES && has_few_packs {
            return Ok(());
        }
        let Ok(kept) = self.retained_commits() else { return self.recreate() };
        // Commits that are kept need a line each in any case.
        if lines <= SHALLOW_LINES + kept.len() && has_few_packs {
            return Ok(());
        }
        // A wait would hold the slot and the mirror.
        let Some(_memory) = self.try_reserve(TRANSFER_MEMORY) else { return Ok(()) };
        match self.pack(&kept, deadline) {
            Ok(()) | Err(PackError::Git(GitError::Interrupted { .. } | GitError::NotStarted { .. })) => {
                Ok(())
            }
            Err(_) => self.recreate(),
        }
    }

    /// Returns the commits that are kept.
    fn retained_commits(&self) -> Result<Vec<CommitId>, ObjectError> {
        let mut kept = Vec::new();
        for reference in self.repository.references_glob(&format!("{KEPT}*"))? {
            if let Some(target) = reference?.target() {
                kept.push(self.peel(target.into())?);
            }
        }
        Ok(kept)
    }

    fn pack(&self, kept: &[CommitId], deadline: &ServerDeadline) -> Result<(), PackError> {
        // The parents of commits that were made here are here too, and would stay: cut them off as a fetch does. Kept
        // ones stay in any case, and a commit may be pushed again that a forge signed on one of them.
        let mut shallow = tempfile::Builder::new().prefix("tmp_").tempfile_in(&self.folder)?;
        let objects = self.repository.odb()?;
        for commit in kept {
            let parents = stated_parents(object::read_commit(&objects, *commit)?.data());
            if !parents.iter().all(|parent| kept.contains(parent)) {
                writeln!(shallow, "{commit}")?;
            }
        }
        shallow.persist(self.folder.join(REPOSITORY).join(SHALLOW)).map_err(|error| error.error)?;
        // Objects that nothing kept leads to are left out.
        let mut call = self.git().call("repack").arguments(["-a", "-d", "-q"]);
        (call.slot, call.deadline) = (Some(&self.slot), Some(deadline));
        call.run()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::git::slots::{RouteKey, TransactionSlots};
    use crate::git::{MirrorKey, MirrorStore, WriterContext, WriterOptions};
    use crate::metrics::Metrics;

    /// After a shutdown each mirror with many packs was fetched anew.
    #[tokio::test]
    async fn a_mirror_stays_unchanged_if_packing_is_interrupted_or_lacks_memory() {
        let directory = tempfile::tempdir().unwrap();
        let context = WriterContext::default();
        let slots = TransactionSlots::limited(1, &Metrics::default());
        let slot = slots.acquire("n", &RouteKey::default()).await;
        let options = WriterOptions {
            mirrors: MirrorStore::new(directory.path().to_owned(), u64::MAX),
            is_dry_run: false,
            context: context.clone(),
            slots,
        };
        let key = MirrorKey { namespace: "n".into(), name: "fleet".into(), url: "u".into() };
        let mut mirror = Mirror::open(&options, &key, slot, Instant::now(), &|| false).unwrap();
        let place = mirror.folder.join(REPOSITORY).join("objects/pack");
        for number in 0..=PACKS {
            fs::write(place.join(format!("pack-{number}.pack")), "").unwrap();
        }
        let deadline = ServerDeadline::after(Duration::from_secs(60));
        let memory = context.capacity.memory.reserve("n", u64::MAX).await;
        mirror.repack(&deadline).unwrap();
        assert_eq!(fs::read_dir(&place).unwrap().count(), PACKS + 1);
        drop(memory);
        context.stop.cancel();
        mirror.repack(&deadline).unwrap();
        assert_eq!(fs::read_dir(&place).unwrap().count(), PACKS + 1);
    }
}
