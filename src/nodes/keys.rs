//! The labels and annotations of a node.

/// The label with the stage, which only the controller writes.
///
/// A node that has it is in a pool.
pub const STATE: &str = "tagboat.dev/state";

/// The label with the state of the agent, which only the agent writes.
pub const AGENT: &str = "tagboat.dev/agent";

/// The label by which a user pauses a node.
pub const PAUSE: &str = "tagboat.dev/pause";

/// The annotation with the wanted image and its digest.
///
/// It is empty while a node leaves its pool, or its pool has an image no longer: the agent then keeps the booted image, and
/// stages no other.
pub const DESIRED_IMAGE: &str = "tagboat.dev/desired-image";

/// The annotation with the time since which the node is in its stage.
///
/// If the node wants its image for a shorter time, it is that time.
pub const STATE_SINCE: &str = "tagboat.dev/state-since";

/// The annotation with the pool of a node.
///
/// While the node holds a slot, it is the pool in which its rollout began.
/// A node that moves to another pool is canceled by it, also if both pools want the same image, and loses the record of its
/// last deployment.
pub const POOL: &str = "tagboat.dev/pool";

/// The annotation of a node that the controller cordoned.
pub const MADE_UNSCHEDULABLE: &str = "tagboat.dev/made-unschedulable";

/// The annotation with the names of the annotations that the controller set for autoscalers.
pub const MADE_ANNOTATIONS: &str = "tagboat.dev/made-annotations";

/// The annotation with the digest, or the version, that was deployed last.
pub const LAST_DEPLOYED: &str = "tagboat.dev/last-deployed";

/// The annotation with the time of the last deployment.
pub const LAST_DEPLOYED_AT: &str = "tagboat.dev/last-deployed-at";

/// The annotation with the digest of the booted image.
pub const BOOTED_DIGEST: &str = "tagboat.dev/booted-digest";

/// The annotation with the version of the booted image.
pub const BOOTED_VERSION: &str = "tagboat.dev/booted-version";

/// The annotation with the digest of the staged image.
pub const STAGED_DIGEST: &str = "tagboat.dev/staged-digest";

/// The annotation with the agent's message for users.
pub const MESSAGE: &str = "tagboat.dev/message";

/// The annotation with the last approval that the agent acknowledged: digest and boot ID.
pub const ATTEMPTED: &str = "tagboat.dev/attempted";

/// The label of nodes of the control plane.
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// The label with the zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// The annotations by which autoscalers leave a node alone.
pub const AUTOSCALER_GUARDS: [&str; 3] = [
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "karpenter.sh/do-not-disrupt",
    "karpenter.sh/do-not-repair",
];

/// All annotations of the controller and the agent.
pub const ANNOTATIONS: [&str; 12] = [
    DESIRED_IMAGE,
    STATE_SINCE,
    POOL,
    MADE_UNSCHEDULABLE,
    MADE_ANNOTATIONS,
    LAST_DEPLOYED,
    LAST_DEPLOYED_AT,
    BOOTED_DIGEST,
    BOOTED_VERSION,
    STAGED_DIGEST,
    MESSAGE,
    ATTEMPTED,
];
