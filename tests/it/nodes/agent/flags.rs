//! The flags of `tagboat agent`.

use crate::support::program::{run, tagboat_without_cluster};

#[test]
fn a_wrong_flag_is_refused_in_one_sentence() {
    let node = "--node=a";
    for (arguments, expected) in [
        (&[][..], "--node is missing: write the name of the node, or set NODE_NAME"),
        (&["--node="], "--node is missing: write the name of the node, or set NODE_NAME"),
        (&["--node=a/b"], "--node \"a/b\" cannot be used: write the name of a Node"),
        (&[node, "--host=flatcar"], "--host \"flatcar\" cannot be used: write auto, bootc"),
        (
            &[node, "--dbus-address=/run/dbus"],
            "--dbus-address \"/run/dbus\" cannot be used: write an address such as unix:path=",
        ),
        (
            &[node, "--reboot-sentinel=reboot"],
            "--reboot-sentinel \"reboot\" cannot be used: write an absolute path",
        ),
        (
            &[node, "--interval=10ms"],
            "--interval \"10ms\" cannot be used: write a second or more, such as 1m",
        ),
        (&[node, "--interval=1"], "--interval: "),
        (&[node, "--health-addr=localhost"], "--health-addr \"localhost\" cannot be used: write HOST:PORT"),
        (&[node, "--metrics-addr=:x"], "--metrics-addr \":x\" cannot be used: write HOST:PORT"),
        (&[node, "--log-level=loud"], "--log-level \"loud\" cannot be used: write trace"),
        (&[node, "--log-encoding=xml"], "--log-encoding \"xml\" cannot be used: write json or console"),
    ] {
        let mut command = tagboat_without_cluster();
        let run = run(command.arg("agent").args(arguments).env_remove("NODE_NAME")).with_status(2);
        let error = run.only_error();
        assert!(error.starts_with(&format!("error: {expected}")), "{arguments:?}: {error}");
    }
}

#[test]
fn the_name_of_the_node_is_taken_from_the_environment() {
    let mut command = tagboat_without_cluster();
    command.args(["agent", "--health-addr=0", "--metrics-addr=0", "--log-encoding=console"]);
    let run = run(command.env("NODE_NAME", "a").env("KUBECONFIG", "/nonexistent")).with_status(1);
    assert!(run.errors.contains("no file of KUBECONFIG exists"), "{}", run.errors);
}
