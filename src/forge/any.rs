//! A client of any forge.

use std::collections::{BTreeMap, BTreeSet};

use super::address::ForgeAddress;
use super::api::Forge;
use super::azure_devops::{AzureDevops, AzureRepository};
use super::bitbucket::{Bitbucket, BitbucketRepository};
use super::bitbucket_data_center::{BitbucketDataCenter, DataCenterRepository};
use super::client::Endpoint;
use super::error::ForgeError;
use super::gitea::{Gitea, GiteaRepository};
use super::github::{Github, GithubRepository};
use super::gitlab::{Gitlab, GitlabProject};
use super::http::{ApiLogin, ForgeClients, HttpTransport};
use super::kind::ForgeKind;
use super::listing::Listing;
use super::pull_request::{Edited, Merge, MergeAnswer, NewPullRequest, Opened, PullRequest, PullRequestEdit};
use crate::git::BranchName;
use url::Url;

/// The client of a repository at any forge.
#[derive(Debug)]
pub enum AnyForge {
    /// At GitHub.
    Github(Box<Github<HttpTransport>>),
    /// At GitLab.
    Gitlab(Box<Gitlab<HttpTransport>>),
    /// At Gitea or Forgejo.
    Gitea(Box<Gitea<HttpTransport>>),
    /// At Bitbucket Cloud.
    Bitbucket(Box<Bitbucket<HttpTransport>>),
    /// At Bitbucket Data Center.
    BitbucketDataCenter(Box<BitbucketDataCenter<HttpTransport>>),
    /// At Azure DevOps.
    AzureDevops(Box<AzureDevops<HttpTransport>>),
}

impl AnyForge {
    /// Makes the client of a repository with a login.
    ///
    /// # Errors
    ///
    /// If an address has no host, or a header cannot carry the login.
    pub fn new(clients: &ForgeClients, address: &ForgeAddress, login: &ApiLogin) -> Result<Self, ForgeError> {
        let transport = |url: &str| {
            let base = Url::parse(url).map_err(|error| ForgeError::unreachable(url, &error.to_string()))?;
            clients.transport(address.kind, base, login.clone())
        };
        let rest = transport(&address.api)?;
        let (host, owner) = (rest.host().to_owned(), rest.owner().to_owned());
        let endpoint =
            || Endpoint { host: host.clone(), login: owner.clone(), has_given_url: address.is_api_given };
        let repository = address.repository.clone();
        let (parent, name) = (repository.owner.clone(), repository.name.clone());
        Ok(match address.kind {
            ForgeKind::Github => {
                let graphql = transport(&address.graphql().unwrap_or_else(|| address.api.clone()))?;
                let repository = GithubRepository { owner: parent, name };
                Self::Github(Box::new(Github::new((rest, graphql), repository, host, owner)))
            }
            ForgeKind::Gitlab => {
                let project = GitlabProject { path: repository.full_name() };
                Self::Gitlab(Box::new(Gitlab::new(rest, endpoint(), project)))
            }
            ForgeKind::Gitea | ForgeKind::Forgejo => {
                let repository = GiteaRepository { owner: parent, name };
                Self::Gitea(Box::new(Gitea::new(rest, endpoint(), repository)))
            }
            ForgeKind::Bitbucket => {
                let repository = BitbucketRepository { workspace: parent, slug: name };
                Self::Bitbucket(Box::new(Bitbucket::new(rest, endpoint(), repository)))
            }
            ForgeKind::BitbucketDataCenter => {
                let repository = DataCenterRepository { project: parent, slug: name };
                let client = BitbucketDataCenter::new(rest, endpoint(), repository);
                Self::BitbucketDataCenter(Box::new(client))
            }
            ForgeKind::AzureDevops => {
                let project = repository.project.unwrap_or_else(|| name.clone());
                let repository = AzureRepository { organization: parent, project, name };
                Self::AzureDevops(Box::new(AzureDevops::new(rest, endpoint(), repository)))
            }
        })
    }
}

/// Calls an operation of the client.
macro_rules! call {
    ($client:expr, $operation:ident($($argument:expr),*)) => {
        match $client {
            AnyForge::Github(client) => client.$operation($($argument),*).await,
            AnyForge::Gitlab(client) => client.$operation($($argument),*).await,
            AnyForge::Gitea(client) => client.$operation($($argument),*).await,
            AnyForge::Bitbucket(client) => client.$operation($($argument),*).await,
            AnyForge::BitbucketDataCenter(client) => client.$operation($($argument),*).await,
            AnyForge::AzureDevops(client) => client.$operation($($argument),*).await,
        }
    };
}

impl Forge for AnyForge {
    async fn open_pull_requests(&self, listing: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
        call!(self, open_pull_requests(listing))
    }

    fn draft_prefixes(&self) -> &'static [&'static str] {
        match self {
            Self::Gitlab(client) => client.draft_prefixes(),
            Self::Gitea(client) => client.draft_prefixes(),
            Self::Github(_) | Self::Bitbucket(_) | Self::BitbucketDataCenter(_) | Self::AzureDevops(_) => &[],
        }
    }

    async fn merge_queue(&self, base: &BranchName) -> Result<Option<BTreeSet<u64>>, ForgeError> {
        call!(self, merge_queue(base))
    }

    async fn find(&self, head: &BranchName, base: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
        call!(self, find(head, base))
    }

    async fn find_many(
        &self,
        heads: &BTreeSet<BranchName>,
        base: &BranchName,
    ) -> Result<Option<BTreeMap<BranchName, Vec<PullRequest>>>, ForgeError> {
        call!(self, find_many(heads, base))
    }

    async fn get(&self, number: u64) -> Result<PullRequest, ForgeError> {
        call!(self, get(number))
    }

    async fn open(&self, new: &NewPullRequest) -> Result<Opened, ForgeError> {
        call!(self, open(new))
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<Edited, ForgeError> {
        call!(self, edit(current, edit))
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        call!(self, merge(current, merge))
    }

    fn tells_auto_merge(&self) -> bool {
        match self {
            Self::Gitea(client) => client.tells_auto_merge(),
            Self::BitbucketDataCenter(client) => client.tells_auto_merge(),
            Self::Github(_) | Self::Gitlab(_) | Self::Bitbucket(_) | Self::AzureDevops(_) => true,
        }
    }

    async fn cancel_merge(&self, current: &PullRequest) -> Result<(), ForgeError> {
        call!(self, cancel_merge(current))
    }
}
