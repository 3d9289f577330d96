//! The maps, sets and caches that tasks share.

/// A row of the inventory.
pub(super) struct Row {
    pub(super) file: &'static str,
    /// `Struct.field`, or the name of a static.
    pub(super) place: &'static str,
    /// The key, with the parts of it among namespace, route and login.
    pub(super) key: &'static str,
    /// The bound of the number of entries, and the evicted entry.
    pub(super) bound: &'static str,
}

const fn row(file: &'static str, place: &'static str, key: &'static str, bound: &'static str) -> Row {
    Row { file, place, key, bound }
}

/// Objects of the API server: a ResourceQuota bounds their number there.
const GOES_WITH_OBJECT: &str = "one entry for an object of the cluster; removed when the object is deleted";

pub(super) const INVENTORY: &[Row] = &[
    row(
        "src/cli/demo/registry.rs",
        "DemoRegistry.manifests",
        "repository and tag; one demo of one person, no tenants",
        "ends with the demo, which pushes seven images",
    ),
    row(
        "src/cli/run/warnings.rs",
        "Warnings.0",
        "the text of a warning; one run of one person, no tenants",
        "ends with the run; as many as there are objects in its manifests",
    ),
    row(
        "src/controller/automation/compare.rs",
        "Comparisons.known",
        "namespace and name of an automation",
        "one status for an object of the cluster, removed with it; 32 MiB of markers, evicts from the namespace with most",
    ),
    row(
        "src/controller/automation/memory.rs",
        "Memory.entries",
        "namespace and name of an automation",
        GOES_WITH_OBJECT,
    ),
    row(
        "src/controller/automation/places.rs",
        "Shared.known",
        "namespace and name of an automation or a policy",
        "10,000 places of an automation, removed with it; 64 MiB, evicts from the namespace with most; 500 files of a status",
    ),
    row(
        "src/controller/engine/in_flight.rs",
        "Cancellations.0",
        "namespace and name of an object",
        "one entry for a reconcile in flight; removed when that ends",
    ),
    row(
        "src/controller/engine/traces.rs",
        "TraceLimiter.0",
        "namespace and name of an object",
        GOES_WITH_OBJECT,
    ),
    row(
        "src/controller/nodes/drains.rs",
        "Drains.0",
        "the name of a node",
        "one drain for a node in its stage; ends and is removed with it",
    ),
    row("src/controller/nodes/fleet.rs", "Fleet.nodes", "the name of a node", GOES_WITH_OBJECT),
    row(
        "src/controller/nodes/fleet.rs",
        "Fleet.uncertain",
        "the name of a node",
        "nodes with a patch without an answer; removed when the node was read again, before the next patch",
    ),
    row(
        "src/controller/nodes/state.rs",
        "NodePools.memory",
        "the name of a cluster-scoped pool",
        GOES_WITH_OBJECT,
    ),
    row(
        "src/controller/policy/memory.rs",
        "Memory.deferred",
        "namespace and name of a policy",
        GOES_WITH_OBJECT,
    ),
    row(
        "src/controller/policy/memory.rs",
        "Memory.satisfied",
        "namespace and name of a policy",
        GOES_WITH_OBJECT,
    ),
    row(
        "src/controller/policy/poller.rs",
        "Poller.slots",
        "route of a digest lookup",
        "1,024; idle ones go first, then those of the namespace with most entries",
    ),
    row(
        "src/controller/policy/poller.rs",
        "Poller.tags",
        "namespace and name of a policy; repository, tag, route and login of a lookup",
        "one entry for a policy that follows a tag; lookups go with the last policy that follows them",
    ),
    row(
        "src/controller/repository/memory.rs",
        "Memory.failures",
        "namespace and name of a repository",
        GOES_WITH_OBJECT,
    ),
    row(
        "src/controller/repository/memory.rs",
        "Memory.left_out",
        "namespace and name of a repository",
        GOES_WITH_OBJECT,
    ),
    row(
        "src/controller/repository/memory.rs",
        "Memory.reconciled",
        "namespace and name of a repository",
        GOES_WITH_OBJECT,
    ),
    row(
        "src/controller/rollout/changed_policies.rs",
        "ChangedPolicies.names",
        "namespace and name of a policy",
        "one per policy with a marker, until the index of places has its image",
    ),
    row(
        "src/controller/rollout/cluster.rs",
        "WatchedCluster.index",
        "kind, namespace and name of a watched object",
        "100,000 objects and 64 MiB of texts, beyond which those of the namespace with most are left out; goes with the object",
    ),
    row(
        "src/controller/rollout/cluster.rs",
        "WatchedCluster.kinds",
        "group and kind",
        "the eleven kinds with a rule, and at most 32 others",
    ),
    row(
        "src/controller/rollout/cluster.rs",
        "WatchedCluster.pending",
        "kind, namespace and name of a watched object",
        "one state for a changed object of the cluster; goes into the index as soon as no computation holds it",
    ),
    row(
        "src/controller/rollout/own_statuses.rs",
        "OwnStatuses.known",
        "namespace and name of a policy",
        GOES_WITH_OBJECT,
    ),
    row(
        "src/controller/rollout/pods/mod.rs",
        "PodLists.lists",
        "kind, namespace and name of a watched object",
        "ten pods or an error of 1,000 objects; goes with the last policy that needs it",
    ),
    row(
        "src/controller/rollout/pods/mod.rs",
        "PodLists.requests",
        "kind, namespace and name of a watched object; namespace and name of a policy",
        "1,000 objects, beyond which those of the namespace with most are removed; goes with the last policy that needs it",
    ),
    row(
        "src/controller/rollout/state.rs",
        "Rollouts.place_index",
        "namespace and name of a policy; of an automation",
        "10,000 places for an automation, as they are scanned; goes with the automation",
    ),
    row(
        "src/controller/rollout/state.rs",
        "Rollouts.kinds",
        "group and kind",
        "the eleven kinds with a rule, and at most 32 others",
    ),
    row(
        "src/controller/rollout/state.rs",
        "Rollouts.remote",
        "the name of a kubeconfig of the operator",
        "64 clusters; goes with the kubeconfig",
    ),
    row(
        "src/git/mirror_store.rs",
        "Shared.mirrors",
        "folder of a mirror: namespace, name and a hash with the URL",
        "--mirrors-max-size in bytes; evicts from the namespace with most bytes, and what was not used for a week",
    ),
    row(
        "src/git/private_file.rs",
        "PrivateFiles.contents",
        "digest of a content that only its owner gives",
        "held weakly: an entry goes with the last transaction that uses it",
    ),
    row(
        "src/git/private_file.rs",
        "PrivateFiles.files",
        "name and digest of a content that only its owner gives",
        "held weakly: an entry goes with the last transaction that uses it",
    ),
    row(
        "src/git/signature/keyring.rs",
        "Keyring.slots",
        "namespace and name of a Secret, and the kind of key",
        "1,024; evicts from the namespace with most entries; goes with the Secret or the automation",
    ),
    row(
        "src/git/signature/keyring.rs",
        "Slot.entry",
        "the part of one OpenPGP key; the slot has the namespace",
        "the parts of one key, whose size is bounded; goes with the slot",
    ),
    row(
        "src/git/slots.rs",
        "Limited.routes",
        "route: origin, proxy and certificate authority",
        "one entry for a route with a transaction that holds or wants a slot; idle ones are removed beyond 64",
    ),
    row(
        "src/git/writer.rs",
        "Shared.deleted",
        "namespace, name and UID of a deleted automation",
        "1,000; evicts from the namespace with most entries; removed when a mirror has dropped its notes of it",
    ),
    row(
        "src/git/writer.rs",
        "Shared.queues",
        "mirror: namespace, name and URL of a GitRepository",
        "one entry for a mirror with work, one request for an automation; removed when the mirror has no work",
    ),
    row(
        "src/net/ssrf_guard.rs",
        "SsrfGuard.admitted",
        "host name that was checked; a guard belongs to one transport (route)",
        "1,024; evicts the least recently used name of the namespace with most",
    ),
    row(
        "src/metrics/deployments.rs",
        "Deployments.known",
        "name of a deployment, or of a cluster",
        "one entry for a DeploymentStatus or a kubeconfig; removed with it, and when the process does not lead any more",
    ),
    row(
        "src/metrics/in_flight.rs",
        "InFlight.timers",
        "number of a reconcile in flight",
        "one entry for a reconcile in flight; removed when that ends",
    ),
    row(
        "src/metrics/namespaces.rs",
        "NamespaceFamilies.known",
        "namespace",
        "1,000 namespaces, further ones share a label; removed with the last object of the namespace",
    ),
    row("src/metrics/node_pools.rs", "NodePools.0", "the name of a cluster-scoped pool", GOES_WITH_OBJECT),
    row(
        "src/objects/cluster/announcer.rs",
        "Announcer.limiter",
        "kind, namespace and name of an object",
        "4,096; evicts from the namespace with most entries",
    ),
    row(
        "src/objects/cluster/cache.rs",
        "Cache.contents",
        "namespace and name of an object",
        "the objects of one kind that the cluster has; a deletion removes the entry",
    ),
    row(
        "src/objects/cluster/deliveries.rs",
        "Inner.tasks",
        "namespace, and a number of the delivery",
        "1,000 notifications or 256 delayed events, also by bytes; the namespace with most loses its oldest",
    ),
    row(
        "src/objects/cluster/mod.rs",
        "ClusterObjects.secrets",
        "namespace and name of a Secret",
        "the Secrets below 16 KiB that automations reconciled together ask for; ends with their batch",
    ),
    row(
        "src/objects/cluster/recorder.rs",
        "Recorder.recent",
        "digest of an object, with its namespace, and of what is said of it",
        "4,096; evicts from the namespace with most entries",
    ),
    row(
        "src/reconcile/automation/batch.rs",
        "Rounds.state",
        "place of a job in its batch",
        "one request for each automation of the batch, until all of them are submitted together",
    ),
    row(
        "src/reconcile/automation/batch_logins.rs",
        "BatchLogins.0",
        "namespace and name of a GitRepository and of its Secrets, and its URL",
        "the logins of automations reconciled together, most often one; ends with their batch",
    ),
    row(
        "src/reconcile/tags.rs",
        "SharedTagStore.reported",
        "namespace and name of a repository",
        GOES_WITH_OBJECT,
    ),
    row(
        "src/objects/remote_clusters/clusters.rs",
        "Shared.known",
        "the name of a kubeconfig of the operator",
        "64 clusters; goes with the kubeconfig",
    ),
    row(
        "src/net/http/rate_limit.rs",
        "RateLimiters.servers",
        "server and route",
        "2,048; idle ones go first, then those of the namespace with most entries",
    ),
    row(
        "src/cloud/cache.rs",
        "CredentialCache.slots",
        "fingerprint of a login, with the namespace and all that it was made from",
        "--token-cache-max-size, at least 4,096 for git; expired ones go first, then those of the namespace with most entries",
    ),
    row(
        "src/cloud/github_app/tokens.rs",
        "AppTokens.installations",
        "fingerprint of a GitHub App with its namespace, key, base URL and route",
        "4,096; goes with a refused token, or by the namespace with most entries",
    ),
    row(
        "src/cloud/github_app/tokens.rs",
        "AppTokens.unrestricted",
        "fingerprint of a login that was logged as unrestricted",
        "4,096; then those of the namespace with most entries",
    ),
    row(
        "src/net/http/pauses.rs",
        "Pauses.0",
        "server and route, namespace and login of the request that was answered with Retry-After",
        "4,096; past ones go first, then those of the namespace with most entries",
    ),
    row(
        "src/registry/registries.rs",
        "Entry.lookups",
        "tag; the entry belongs to one repository, namespace, route and login",
        "one entry for a lookup in flight; removed with the last that waits for it",
    ),
    row(
        "src/registry/registries.rs",
        "Shared.entries",
        "fingerprint of repository, namespace, route and login",
        "8,192; idle ones go first, then those of the namespace with most entries",
    ),
    row(
        "src/net/http/client.rs",
        "ClientState.transports",
        "fingerprint of a route: proxy, certificates and timeouts",
        "256; idle ones go first, then those of the namespace with most entries",
    ),
    row(
        "src/registry/server.rs",
        "Servers.known",
        "address and route; only what `GET /v2/` said",
        "1,024; stale ones go first, then those of the namespace with most entries",
    ),
    row(
        "src/registry/server.rs",
        "Servers.probes",
        "address, route and namespace",
        "one entry for a probe in flight; removed with the last that waits for it",
    ),
    row(
        "src/registry/store/mod.rs",
        "TagStore.disk",
        "namespace and name of an ImageRepository",
        "a number of bytes; evicts from the namespace with most",
    ),
    row(
        "src/registry/store/mod.rs",
        "TagStore.memory",
        "namespace and name of an ImageRepository",
        "a number of bytes; evicts from the namespace with most",
    ),
    row(
        "src/registry/store/mod.rs",
        "TagStore.objects",
        "namespace and name of an ImageRepository",
        "one lock for a list that is read or written now; removed when nothing holds it",
    ),
    row(
        "src/tenancy/semaphore.rs",
        "Inner.state",
        "namespace",
        "one entry for a namespace that holds or waits; removed when it does neither",
    ),
    row(
        "src/web/store/clusters.rs",
        "Clusters.states",
        "name of a cluster",
        "one entry for the own cluster and for each that an administrator has configured",
    ),
    row("src/web/store/deployment_store.rs", "Shared.ids", "uid of an image policy", GOES_WITH_OBJECT),
];
