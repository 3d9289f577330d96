//! Questions to the forge before git, in a process without tasks.
//!
//! The pull requests are listed once for all automations. The next round reports an error.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::OwnedMutexGuard;

use super::super::delivery::{ImageHash, OwnerHash};
use super::super::waiting::WriteGate;
use super::branchless::CLOSING_TIME;
use super::put_off::closed_gate;
use super::repository::{Repository, RepositoryKey};
use super::snapshot::Snapshot;
use super::tasks::SharedQueue;
use crate::forge::{AnyForge, ForgeError, PullRequest};
use crate::git::BranchName;

/// The branches of an automation whose pull requests are looked up before git.
pub(super) struct LookUp<'l> {
    /// The base.
    pub(super) base: &'l BranchName,
    /// The branches.
    pub(super) branches: &'l BTreeSet<BranchName>,
    /// The images of the policies of each branch.
    pub(super) images: &'l BTreeMap<BranchName, BTreeSet<ImageHash>>,
    /// The automation.
    pub(super) owner: OwnerHash,
    /// Decides whether it may write.
    pub(super) gate: Option<WriteGate>,
}

impl SharedQueue {
    /// Lists the pull requests of a repository, and looks the closed ones of branches up.
    pub(super) async fn look_up(&self, key: &RepositoryKey, wanted: LookUp<'_>) {
        if let Err(error) = self.try_to_look_up(key, &wanted).await {
            self.note_failure(key, error);
        }
    }

    async fn try_to_look_up(&self, key: &RepositoryKey, wanted: &LookUp<'_>) -> Result<(), ForgeError> {
        let Some((access, _)) = self.access(key) else { return Ok(()) };
        let forge = AnyForge::new(&self.options.clients, &access.address, &access.login)?;
        self.list_once(key, &forge, wanted.branches).await?;
        self.await_closings(key, &forge, wanted).await?;
        self.take_back(key, &forge, wanted).await?;
        self.search(key, &forge, wanted).await
    }

    /// Waits until no other automation lists, or takes branches back.
    async fn turn(&self, key: &RepositoryKey) -> Option<OwnedMutexGuard<()>> {
        let turn = Arc::clone(&self.state.lock().repositories.get(key)?.turn);
        Some(turn.lock_owned().await)
    }

    /// Lists the pull requests, unless another automation has done so or has waited in vain.
    async fn list_once(
        &self,
        key: &RepositoryKey,
        forge: &AnyForge,
        branches: &BTreeSet<BranchName>,
    ) -> Result<(), ForgeError> {
        let Some(_turn) = self.turn(key).await else { return Ok(()) };
        if let Some(known) = self.known_listing(key) {
            return known;
        }
        let Some((_, mut snapshot)) = self.access(key) else { return Ok(()) };
        // Git waits for the answer, to make branches whose pull requests are to be opened.
        let listed = snapshot.list(forge, branches, true).await.map(|()| snapshot);
        self.take_list(key, listed)
    }

    /// Lists again once the forge had the time to close pull requests of deleted branches.
    ///
    /// Only then it is known which of them a person has reopened.
    async fn await_closings(
        &self,
        key: &RepositoryKey,
        forge: &AnyForge,
        LookUp { base, branches, .. }: &LookUp<'_>,
    ) -> Result<(), ForgeError> {
        let Some(_turn) = self.turn(key).await else { return Ok(()) };
        let Some((_, snapshot)) = self.access(key) else { return Ok(()) };
        if !snapshot.may_close_one(base, branches) {
            return Ok(());
        }
        tokio::time::sleep(CLOSING_TIME).await;
        // Another automation has perhaps searched meanwhile.
        let Some((_, mut snapshot)) = self.access(key) else { return Ok(()) };
        let heads = snapshot.open_heads().chain(*branches).cloned().collect();
        let listed = snapshot.list(forge, &heads, true).await.map(|()| snapshot);
        self.take_list(key, listed)
    }

    /// Lists pull requests again if the list is too old to end branches.
    pub(super) async fn list_for_ends(&self, key: &RepositoryKey) {
        let heads = {
            let state = self.state.lock();
            let found = state.repositories.get(key);
            found.filter(|found| found.needs_list_for_ends(Instant::now())).map(Repository::heads)
        };
        let (Some(heads), Some((access, mut snapshot))) = (heads, self.access(key)) else { return };
        let listed = match AnyForge::new(&self.options.clients, &access.address, &access.login) {
            Ok(forge) => snapshot.list(&forge, &heads, true).await.map(|()| snapshot),
            Err(error) => Err(error),
        };
        // An error is kept, and the branches stay.
        let _ = self.take_list(key, listed);
    }

    fn take_list(&self, key: &RepositoryKey, listed: Result<Snapshot, ForgeError>) -> Result<(), ForgeError> {
        match self.state.lock().repositories.get_mut(key) {
            Some(repository) => repository.take_list(listed, Instant::now()),
            None => Ok(()),
        }
    }

    /// Returns the result of a listing for another automation, if there was one.
    fn known_listing(&self, key: &RepositoryKey) -> Option<Result<(), ForgeError>> {
        let state = self.state.lock();
        let repository = state.repositories.get(key)?;
        match &repository.look_up_failure {
            _ if repository.listed.is_some() => Some(Ok(())),
            failure => failure.clone().map(Err),
        }
    }

    fn note_failure(&self, key: &RepositoryKey, error: ForgeError) {
        if let Some(repository) = self.state.lock().repositories.get_mut(key) {
            repository.look_up_failure = Some(error);
        }
    }

    /// Takes the branches back that people have handed back.
    ///
    /// Automations that share a branch wait for each other, so the label is removed once. A label that the forge does not
    /// remove keeps no other branch from being taken back.
    async fn take_back(
        &self,
        key: &RepositoryKey,
        forge: &AnyForge,
        wanted: &LookUp<'_>,
    ) -> Result<(), ForgeError> {
        let LookUp { base, branches, owner, gate, .. } = wanted;
        let Some(_turn) = self.turn(key).await else { return Ok(()) };
        let Some((_, mut snapshot)) = self.access(key) else { return Ok(()) };
        let owners = BTreeSet::from([owner.clone()]);
        // People hand back branches too that are not rendered any more.
        let all = &snapshot.branches_of(base, owner) | branches;
        let labelled: Vec<PullRequest> =
            all.iter().filter_map(|branch| snapshot.handed_back((base, branch), &owners)).collect();
        let gates = gate.iter().cloned().collect();
        if labelled.is_empty() || closed_gate(&self.options.pool, gates).await.is_some() {
            return Ok(());
        }
        let done = snapshot.take_back_all(forge, &labelled, self.options.is_dry_run).await;
        self.merge(key, &snapshot, (base, &all));
        done
    }

    /// Looks the closed pull requests of the branches up.
    async fn search(
        &self,
        key: &RepositoryKey,
        forge: &AnyForge,
        wanted: &LookUp<'_>,
    ) -> Result<(), ForgeError> {
        let LookUp { base, images, .. } = wanted;
        let Some((_, mut snapshot)) = self.access(key) else { return Ok(()) };
        let lacks_past = |branch: &&BranchName| snapshot.found(base, branch).lack_past(&images[*branch]);
        let branches: BTreeSet<BranchName> = images.keys().filter(lacks_past).cloned().collect();
        snapshot.look_up_many(forge, base, &branches).await?;
        for branch in &branches {
            snapshot.look_up(forge, base, branch).await?;
        }
        self.merge(key, &snapshot, (base, &branches));
        Ok(())
    }

    /// Takes what a snapshot has about some branches.
    fn merge(
        &self,
        key: &RepositoryKey,
        snapshot: &Snapshot,
        (base, branches): (&BranchName, &BTreeSet<BranchName>),
    ) {
        if let Some(repository) = self.state.lock().repositories.get_mut(key) {
            Arc::make_mut(&mut repository.snapshot).take(snapshot, base, branches);
        }
    }
}
