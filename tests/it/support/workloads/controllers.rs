//! The process kube-controller-manager.

use std::fs;

use crate::support::api_server::{ADMIN_TOKEN, ApiServer, server_command};
use crate::support::built_program::KUBE_CONTROLLER_MANAGER;
use crate::support::process_reaper::ProcessReaper;

/// The controllers of workloads, and those that remove objects.
const CONTROLLERS: [&str; 10] = [
    "deployment-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
];

/// The running controllers of one API server, until dropped.
pub(crate) struct Controllers {
    _process: ProcessReaper,
}

impl Controllers {
    /// Starts the controllers as an administrator.
    /// They work as soon as they have read their objects.
    pub(crate) fn start(server: &ApiServer) -> Self {
        let directory = server.directory();
        let kubeconfig = directory.join("controllers.kubeconfig");
        fs::write(&kubeconfig, server.access().kubeconfig(ADMIN_TOKEN, "default")).unwrap();
        let mut command = server_command(&KUBE_CONTROLLER_MANAGER.file(), directory);
        command.arg("--kubeconfig").arg(&kubeconfig);
        command.arg(format!("--controllers={}", CONTROLLERS.join(",")));
        // Nothing else stands for election, and nothing reads its metrics.
        command.args(["--leader-elect=false", "--secure-port=0"]);
        // Many tests at the same time make more requests than one cluster of this size.
        command.args(["--kube-api-qps=1000", "--kube-api-burst=2000"]);
        Self { _process: ProcessReaper::start(&command).unwrap() }
    }
}
