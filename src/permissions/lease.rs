//! Names of the Leases by which controllers elect a leader.

use sha2::{Digest, Sha256};

/// Flux's two image controllers, whose Leases Tagboat takes.
///
/// So only one of both programs writes.
pub const ELECTED: [&str; 2] = ["image-automation-controller", "image-reflector-controller"];

/// The name of the nodes controller, from which its Lease has its name.
pub const NODES_CONTROLLER: &str = "tagboat-nodes";

/// Returns the name of the Lease of a controller.
///
/// With a label selector it ends in the first eight hexadecimal digits of the selector's SHA-256, as in Flux.
pub fn lease_name(controller: &str, selector: Option<&str>) -> String {
    let name = format!("{controller}-leader-election");
    let Some(selector) = selector else { return name };
    format!("{name}-{:.8x}", Sha256::digest(selector))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_has_a_lease_of_its_own() {
        const NAME: &str = "image-automation-controller-leader-election";
        assert_eq!(lease_name(ELECTED[0], None), NAME);
        // The first digits of the output of `printf %s team=x | sha256sum`.
        assert_eq!(lease_name(ELECTED[0], Some("team=x")), format!("{NAME}-aaf9fc45"));
    }
}
