//! Pull requests on the real Gitea, and on test servers of the other forges.

mod azure_devops;
mod bitbucket;
mod bitbucket_data_center;
mod faults;
mod gitea;
mod github;
mod gitlab;
mod life;
mod program;
mod routes;
mod served;
mod transport;
