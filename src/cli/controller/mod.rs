//! `tagboat controller`: reconciles the objects of a cluster until a signal ends it.
//!
//! | module | contents |
//! |---|---|
//! | `entry` | argument lists of Flux, as its Deployments have them |
//! | `flags`, `values` | the flags, and their values by type |
//! | `options` | the options that the flags give |

mod entry;
mod flags;
mod options;
mod values;

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;

use super::service::{self, listen, shutdown_signal, spawn};
use super::{Failure, kubeconfig, runtime};
use crate::controller::automation::{self, AutomationOptions, Places, RunOptions};
use crate::controller::nodes::{self, NodeOptions};
use crate::controller::reflector::{self, ReflectorOptions, Sources};
use crate::controller::{self, ControllerOptions, Election, lease_name};
use crate::error::chain;
use crate::forge::{ForgeClientOptions, ForgeClients};
use crate::git::{Keyring, MirrorStore, PrivateDirectory, PrivateFiles, ProcessEnv};
use crate::objects::cluster::{
    ApiGuard, ClusterObjects, FIELD_MANAGER, Notifier, REFLECTOR, Scope, counting_client,
};
use crate::objects::remote_clusters::RemoteClusters;
use crate::reconcile::automation::batch_logins::LargeLogins;
use crate::reconcile::automation::login::LoginOptions;
use crate::reconcile::automation::provider_login::GitClouds;
use crate::reconcile::registries::AuthenticatedRegistries;
use crate::reconcile::repository::logins::{Logins, ServiceAccounts};
use crate::reconcile::repository::request::ObjectIdentity;
use crate::reconcile::tags::SharedTagStore;
use crate::registry::store::TagStore;
use crate::registry::{Registries, RegistryOptions};
use crate::telemetry;
use crate::web;
use crate::web::store::{self, Stores};
use options::{Controller, Options};

pub(super) use entry::normalize_args;
pub use flags::page as flags_page;
pub(super) use options::ControllerArguments;

/// The environment variable with the namespace of the pod.
///
/// This namespace is watched if not all are.
const NAMESPACE: &str = "RUNTIME_NAMESPACE";

pub(super) fn run(arguments: &ControllerArguments) -> Result<(), Failure> {
    let options = arguments.read()?;
    telemetry::log(options.log_level, options.log_encoding);
    for warning in &options.warnings {
        tracing::warn!("{warning}");
    }
    service::run(runtime::multi_threaded()?, serve(options))
}

async fn serve(options: Options) -> Result<(), Failure> {
    let end = shutdown_signal()?;
    let metrics = options.measures.clone();
    options.probes.serve(&metrics).await?;
    PrivateDirectory::sweep();
    let configuration = kubeconfig::infer().await.map_err(Failure::new)?;
    let own_namespace = std::env::var(NAMESPACE).ok().filter(|name| !name.is_empty());
    let namespace = own_namespace.clone().unwrap_or_else(|| configuration.default_namespace.clone());
    let unusable = |error| Failure::new(format!("the kubeconfig cannot be used: {error}"));
    let mut node_client = configuration.clone();
    node_client.default_retry = false;
    let node_client = counting_client(node_client, metrics.clone()).map_err(unusable)?;
    let client = counting_client(configuration, metrics.clone()).map_err(unusable)?;
    // A dry run concerns automations only.
    let automation = options.controllers.contains(&Controller::Automation);
    let reflector = options.controllers.contains(&Controller::Reflector) && !options.is_dry_run;
    let scope = Scope {
        namespace: own_namespace.filter(|_| !options.watches_all_namespaces),
        labels: options.labels.clone(),
    };
    let remote_clusters = open_remote_clusters(&options).await?;
    let stores = observe_deployments(&options, &client, &scope, remote_clusters.as_ref());
    if let Some(status) = &options.status {
        let listener = listen("status-addr", &status.address).await?;
        spawn("status", web::serve_status(listener, stores.clone(), status.hosts.clone()));
    }
    let push = options.push.clone();
    let registries = RegistryOptions {
        capacity: options.capacity.clone(),
        metrics: Some(metrics.clone()),
        ..options.registries.clone()
    };
    let (tags, registries) = (options.state.join("tags"), Registries::new(registries));
    let capacity = options.capacity.clone();
    let guard = ApiGuard::measured(&metrics);
    let accounts = (options.policies.identity == ObjectIdentity::On).then(|| {
        let accounts = ClusterObjects::with_guard(client.clone(), guard.clone()).accounts();
        ServiceAccounts { accounts: Arc::new(accounts), default: options.default_account.clone() }
    });
    let git = GitClouds {
        clouds: registries.clouds(),
        identity: options.policies.identity,
        accounts: accounts.clone(),
    };
    let ControllerSet { reflector: second, automation: mut options, nodes: node_options } =
        controller_options(options, &scope, &namespace, &guard, git)?;
    options.remote_clusters = remote_clusters;
    let mut controllers = Vec::new();
    if let Some(push) = push {
        let push = web::push(stores, push, options.controller.is_leader.subscribe());
        tokio::spawn(push.map_err(|error| Failure::new(chain(&error)))?);
    }
    if automation {
        controllers.push(automation::controller(client.clone(), options, metrics.clone()));
    }
    if let Some((controller, options)) = node_options {
        let objects = ClusterObjects::with_guard(client.clone(), guard.clone());
        let registry =
            AuthenticatedRegistries { objects, registries: registries.clone(), logins: Logins::Named(None) };
        controllers.push(nodes::controller(node_client, controller, options, registry, metrics.clone()));
    }
    if reflector {
        let objects = ClusterObjects::with_guard(client.clone(), guard);
        let registry = AuthenticatedRegistries { objects, registries, logins: Logins::Named(accounts) };
        let sources =
            Sources { registry, tag_store: SharedTagStore::new(TagStore::new(Some(tags)), capacity) };
        controllers.push(reflector::controller(client.clone(), second, sources, metrics));
    }
    let result = controller::run(&client, controllers, end).await;
    result.map_err(|error| Failure::new(chain(&error)))
}

/// Observes the deployments and node pools, which every replica does, if something shows them.
fn observe_deployments(
    options: &Options,
    client: &Client,
    scope: &Scope,
    remote_clusters: Option<&RemoteClusters>,
) -> Stores {
    let stores = Stores::new(&options.cluster_name);
    if options.status.is_some() || options.push.is_some() {
        // Labels assign objects to controllers, but a user asks one of them for all.
        let scope = Scope { labels: None, ..scope.clone() };
        tokio::spawn(store::observe(client.clone(), scope, stores.deployments.clone()));
        if options.status.is_some() {
            tokio::spawn(store::observe_nodes(client.clone(), stores.nodes.clone()));
        }
        tokio::spawn(store::probe(client.clone(), stores.clone(), options.measures.clone()));
        if let Some(clusters) = remote_clusters {
            tokio::spawn(store::follow_remote_clusters(clusters.clone(), stores.clone()));
        }
    }
    stores
}

/// Reads the kubeconfigs of other clusters, from now on again and again.
async fn open_remote_clusters(options: &Options) -> Result<Option<RemoteClusters>, Failure> {
    let Some(clusters) = &options.remote_clusters else { return Ok(None) };
    let clusters = RemoteClusters::open(clusters.clone(), options.measures.clone()).await;
    let clusters = clusters.map_err(|error| Failure::new(format!("--clusters: {}", chain(&error))))?;
    tokio::spawn(clusters.clone().run());
    Ok(Some(clusters))
}

/// The options of the controllers of a process.
struct ControllerSet {
    reflector: ReflectorOptions,
    automation: AutomationOptions,
    /// None if node pools are not reconciled.
    nodes: Option<(ControllerOptions, NodeOptions)>,
}

/// Returns the options of all controllers, from the flags and the environment of the pod.
fn controller_options(
    options: Options,
    scope: &Scope,
    namespace: &str,
    guard: &ApiGuard,
    git: GitClouds,
) -> Result<ControllerSet, Failure> {
    let notifier = options.events.as_deref().map(Notifier::new).transpose();
    let notifier = notifier.map_err(|error| Failure::Usage(chain(&error)))?;
    let (instance, process_id) = (host_name(), random_uuid()?);
    let election = |controller: &str, labels: Option<&str>| {
        options.election.map(|times| Election {
            namespace: namespace.to_owned(),
            name: lease_name(controller, labels),
            identity: format!("{instance}_{process_id}"),
            duration: times.duration,
            renew_deadline: times.renew_deadline,
            retry_period: times.retry_period,
            is_released: times.is_released,
        })
    };
    let controller = |name: &'static str, is_dry_run| -> Result<ControllerOptions, Failure> {
        Ok(ControllerOptions {
            name,
            scope: scope.clone(),
            backoff: options.backoff,
            election: election(name, options.labels.as_deref()),
            guard: guard.clone(),
            notifier: notifier.clone(),
            instance: instance.clone(),
            process_id: random_uuid()?,
            is_dry_run,
            is_leader: watch::Sender::default(),
        })
    };
    let second =
        ReflectorOptions { controller: controller(REFLECTOR, false)?, policies: options.policies.clone() };
    let nodes = options.tag_resolution.map(|tag_interval| {
        // Nodes belong to the cluster, so one process has all pools, with any labels.
        let (scope, election) = (Scope::default(), election(nodes::NAME, None));
        let controller = ControllerOptions { scope, election, ..controller(nodes::NAME, false)? };
        let own_pod = (namespace.to_owned(), instance.clone());
        Ok::<_, Failure>((controller, NodeOptions { tag_interval, own_pod, clock: Timestamp::now }))
    });
    let nodes = nodes.transpose()?;
    let login = LoginOptions {
        local_paths: None,
        local_addresses: options.local_addresses,
        is_of_the_user: false,
        process_env: ProcessEnv::from_process(),
        ssh_algorithms: options.ssh_algorithms,
        mirror_size: options.mirror_size,
        files: PrivateFiles::default(),
        capacity: options.capacity.clone(),
        git,
        forges: ForgeClients::new(ForgeClientOptions {
            rate_limits: options.forge_limits,
            local_addresses: options.local_addresses,
            capacity: options.capacity.clone(),
            metrics: options.measures.clone(),
            ..ForgeClientOptions::default()
        }),
        large: Some(LargeLogins::default()),
    };
    let automation = AutomationOptions {
        controller: controller(FIELD_MANAGER, options.is_dry_run)?,
        namespace: namespace.to_owned(),
        concurrent: options.concurrent,
        run: RunOptions {
            cross_namespace: options.cross_namespace,
            login,
            keyring: Keyring::new(options.capacity.clone()),
            references: options.references,
            warns_of_markers: options.warns_of_markers,
            times: options.times,
        },
        mirrors: MirrorStore::new(options.state.join("mirrors"), options.mirrors_size),
        capacity: options.capacity,
        places: options.reports_rollouts.then(Places::default),
        remote_clusters: None,
    };
    Ok(ControllerSet { reflector: second, automation, nodes })
}

/// Returns the name of this machine; in a pod, the name of the pod.
fn host_name() -> String {
    let read = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = std::env::var("HOSTNAME").ok().or_else(read).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "tagboat".to_owned() } else { name.to_owned() }
}

/// Returns a random UUID.
fn random_uuid() -> Result<String, Failure> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid");
    let text = text.map_err(|error| Failure::new(format!("cannot read random bytes: {error}")))?;
    Ok(text.trim().to_owned())
}
