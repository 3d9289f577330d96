//! A remote on this disk and its mirrors, used through the library.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tagboat::cancel::Cancellation;
use tagboat::git::checkout::CheckoutReference;
use tagboat::git::outcome::{Outcome, Target};
use tagboat::git::{
    AccessOptions, AccessPlan, Answer, Author, CommitTime, Credentials, Failure, Known, LocalPaths, Login,
    MirrorKey, MirrorStore, Proposal, Proposer, RemotePlan, RemoteUrl, Request, RouteKey, SyncError,
    TransactionSlots, Writer, WriterContext, WriterOptions,
};
use tagboat::metrics::Metrics;
use tagboat::reconcile::automation::findings::SigningResult;
use tagboat::reconcile::automation::proposal::{Detail, MessageSource, UpdateProposal};
use tagboat::reconcile::automation::reverts::Reverts;
use tagboat::reconcile::automation::siblings::Siblings;
use tagboat::reconcile::automation::waiting::RunWait;
use tagboat::reference::ImageReference;
use tagboat::tenancy::Capacity;
use tagboat::update::{PolicyState, Setters, UpdateRequest};
use tagboat_api::ObjectName;
use tagboat_api::settings::TemplateLanguage;
use tempfile::TempDir;

use crate::support::bare_repository::BareRepository;
use crate::support::content::Change;
use crate::support::fleet::IMAGE;

/// The size limit of a mirror in tests of other things.
const ROOMY: u64 = 2 << 30;

/// A remote with a branch `main`, and a directory of mirrors.
pub(super) struct LocalRemote {
    root: TempDir,
    pub(super) remote: BareRepository,
    limit: u64,
    /// The limit of all mirrors together.
    total_limit: u64,
    /// The commit that a status would have as the last one pushed.
    pushed: Mutex<Option<String>>,
}

impl LocalRemote {
    pub(super) fn new(files: &[Change]) -> Self {
        Self::at(tempfile::tempdir().unwrap(), files)
    }

    /// Creates the remote in memory if the machine has such a file system.
    pub(super) fn in_memory(files: &[Change]) -> Self {
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self::at(root.unwrap(), files)
    }

    fn at(root: TempDir, files: &[Change]) -> Self {
        let remote = BareRepository::with_files(&root.path().join("fleet.git"), files);
        Self { root, remote, limit: ROOMY, total_limit: ROOMY, pushed: Mutex::default() }
    }

    /// Sets the size limit of each mirror, in bytes.
    pub(super) fn within(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Sets the size limit of all mirrors together, in bytes.
    pub(super) fn within_total(self, total_limit: u64) -> Self {
        Self { total_limit, ..self }
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn mirrors(&self) -> PathBuf {
        self.root.path().join("mirrors")
    }

    /// The repository of the only mirror.
    pub(super) fn mirror(&self) -> PathBuf {
        repository_of_only_mirror(&self.mirrors())
    }

    /// Sets the tag of `default/podinfo` and updates the remote through the mirror.
    pub(super) fn update(&self, tag: &str) -> Result<Outcome, Arc<SyncError>> {
        self.answer(tag, false).result.map_err(|failure| match failure {
            Failure::Sync(error) => error,
            Failure::Proposer(error) => panic!("{error}"),
        })
    }

    /// Plans the same update without a push.
    pub(super) fn dry_run(&self, tag: &str) -> Answer<UpdateProposal> {
        self.answer(tag, true)
    }

    fn answer(&self, tag: &str, is_dry_run: bool) -> Answer<UpdateProposal> {
        let request = self.request("default/fleet", proposer(tag), Duration::from_secs(120));
        let [answer] = self.transact(vec![request], is_dry_run);
        if let Ok(Outcome::Pushed(push)) = &answer.result {
            *self.pushed.lock().unwrap() = Some(push.commit.to_string());
        }
        answer
    }

    /// A request for a commit on `main`.
    pub(super) fn request<P: Proposer>(&self, name: &str, proposer: P, timeout: Duration) -> Request<P> {
        let address = self.remote.path().to_str().unwrap();
        let url = RemoteUrl::parse(address, LocalPaths::Under(self.root())).unwrap();
        let login = Login::Given(Credentials::Local);
        let access = AccessPlan::new(&url, login, AccessOptions::default()).unwrap();
        let mirror = MirrorKey { namespace: "default".into(), name: "fleet".into(), url: url.to_string() };
        let (route, size_limit) = (RouteKey::default(), self.limit);
        let remote = RemotePlan { url, access, timeout, route, size_limit, large: None };
        let target = Target {
            own_branches: None,
            checkout: CheckoutReference::Branch("main".parse().unwrap()),
            push: "main".parse().unwrap(),
            refspec: None,
            options: Vec::new(),
        };
        let proposal = Proposal {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            target,
            known: Known { pushed: self.pushed.lock().unwrap().clone(), ..Known::default() },
            signing: None,
            cancellation: Cancellation::default(),
            proposer: Box::new(proposer),
        };
        Request { mirror, remote, proposal }
    }

    /// A writer of the mirrors.
    pub(super) fn writer<P: Proposer>(&self, is_dry_run: bool) -> Writer<P> {
        Writer::new(self.writer_options(is_dry_run))
    }

    /// A writer with threads and memory that other work shares.
    pub(super) fn writer_within<P: Proposer>(&self, capacity: Capacity) -> Writer<P> {
        let context = WriterContext { capacity, ..WriterContext::default() };
        Writer::new(WriterOptions { context, ..self.writer_options(false) })
    }

    fn writer_options(&self, is_dry_run: bool) -> WriterOptions {
        WriterOptions {
            mirrors: MirrorStore::new(self.mirrors(), self.total_limit),
            is_dry_run,
            context: WriterContext::default(),
            slots: TransactionSlots::limited(4, &Metrics::default()),
        }
    }

    /// Answers requests together.
    pub(super) fn transact<P: Proposer, const N: usize>(
        &self,
        requests: Vec<Request<P>>,
        is_dry_run: bool,
    ) -> [Answer<P>; N] {
        let writer = self.writer(is_dry_run);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answers: Vec<Answer<P>> = runtime.block_on(async {
            let mut answers = Vec::new();
            for answer in writer.submit(requests) {
                answers.push(answer.await.expect("the writer answers"));
            }
            writer.finish().await;
            answers
        });
        answers.try_into().ok().expect("each request has an answer")
    }
}

/// The repository of the only mirror below a directory.
pub(super) fn repository_of_only_mirror(mirrors: &Path) -> PathBuf {
    let folders: Vec<_> = fs::read_dir(mirrors).unwrap().map(|item| item.unwrap().path()).collect();
    let [folder] = folders.as_slice() else { panic!("{folders:?}") };
    folder.join("repository.git")
}

/// A proposer that sets the tag of `default/podinfo`.
pub(super) fn proposer(tag: &str) -> UpdateProposal {
    UpdateProposal {
        branches: None,
        siblings: Siblings::default(),
        delivered: None,
        pull_requests: None,
        reverts: Reverts::default(),
        update: UpdateRequest { setters: setters([("podinfo", tag)]), ..UpdateRequest::default() },
        author: Author::new("Tagboat", "tagboat@example.com"),
        message: MessageSource {
            automation: ObjectName { namespace: "default".to_owned(), name: "fleet".to_owned() },
            values: BTreeMap::new(),
            template: Some(format!("Podinfo {tag}")),
            language: TemplateLanguage::Go,
        },
        time: CommitTime { seconds: 1_767_323_045, offset: 0 },
        signer: None,
        unusable: Vec::new(),
        policies: BTreeMap::new(),
        wanted: BTreeMap::new(),
        login: None,
        signing_login: None,
        reselection: None,
        detail: Detail::Everything,
        places: None,
        compare: None,
        has_unparsable: false,
        wait: RunWait::default(),
        plan: None,
        findings: None,
        signing: SigningResult::default(),
        diff: None,
    }
}

/// Policies of the namespace `default`, by name and tag.
pub(super) fn setters<'t>(tags: impl IntoIterator<Item = (&'t str, &'t str)>) -> Setters {
    let policies = tags.into_iter().map(|(name, tag)| {
        let image = ImageReference::from_parts(IMAGE, tag, None).unwrap();
        (ObjectName { namespace: "default".to_owned(), name: name.to_owned() }, PolicyState::Image(image))
    });
    Setters::new(policies.collect::<BTreeMap<_, _>>())
}

/// The files below a directory with their sizes.
pub(super) fn files_below(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        // The directory may be in use, so any file may vanish.
        let Ok(listing) = fs::read_dir(directory) else { continue };
        for item in listing.flatten() {
            match item.metadata() {
                Ok(metadata) if metadata.is_dir() => directories.push(item.path()),
                Ok(metadata) => files.push((item.path(), metadata.len())),
                Err(_) => {}
            }
        }
    }
    files.sort();
    files
}

/// The size of everything below a directory, in bytes.
pub(super) fn size_of(directory: &Path) -> u64 {
    files_below(directory).into_iter().map(|(_, size)| size).sum()
}
