//! Finds the programs that `hack/testbin/build` makes, as envtest finds its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A program that `hack/testbin/build` makes.
#[derive(Clone, Copy)]
pub(crate) struct BuiltProgram {
    pub(crate) name: &'static str,
    /// The environment variable that names another file.
    pub(crate) variable: &'static str,
    /// The module of `hack/testbin` that makes it.
    pub(crate) module: &'static str,
    /// The duration of the first build, for the message.
    pub(crate) build_time: &'static str,
}

const KUBERNETES_BUILD_TIME: &str = "about 7 minutes";

pub(crate) const KUBE_APISERVER: BuiltProgram = BuiltProgram {
    name: "kube-apiserver",
    variable: "TEST_ASSET_KUBE_APISERVER",
    module: "kubernetes",
    build_time: KUBERNETES_BUILD_TIME,
};

pub(crate) const KUBE_CONTROLLER_MANAGER: BuiltProgram = BuiltProgram {
    name: "kube-controller-manager",
    variable: "TEST_ASSET_KUBE_CONTROLLER_MANAGER",
    module: "kubernetes",
    build_time: KUBERNETES_BUILD_TIME,
};

pub(crate) const ETCD: BuiltProgram = BuiltProgram {
    name: "etcd",
    variable: "TEST_ASSET_ETCD",
    module: "kubernetes",
    build_time: KUBERNETES_BUILD_TIME,
};

pub(crate) const REGISTRY: BuiltProgram = BuiltProgram {
    name: "registry",
    variable: "TEST_ASSET_REGISTRY",
    module: "registry",
    build_time: "about 2 minutes",
};

pub(crate) const HELM: BuiltProgram = BuiltProgram {
    name: "helm",
    variable: "TEST_ASSET_HELM",
    module: "packaging",
    build_time: "about 3 minutes",
};

pub(crate) const KUSTOMIZE: BuiltProgram = BuiltProgram {
    name: "kustomize",
    variable: "TEST_ASSET_KUSTOMIZE",
    module: "packaging",
    build_time: "about 3 minutes",
};

pub(crate) const GITEA: BuiltProgram = BuiltProgram {
    name: "gitea",
    variable: "TEST_ASSET_GITEA",
    module: "gitea",
    build_time: "about 5 minutes",
};

impl BuiltProgram {
    /// The program's file. A test without it fails with the command that builds it.
    pub(crate) fn file(self) -> PathBuf {
        self.find(|variable| std::env::var_os(variable), Path::new(env!("CARGO_MANIFEST_DIR")))
            .unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// The file according to an environment and a checkout.
    pub(crate) fn find(
        self,
        variable: impl Fn(&str) -> Option<OsString>,
        checkout: &Path,
    ) -> Result<PathBuf, String> {
        let Self { name, variable: own, module, build_time } = self;
        let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(file) = set(own) {
            return if file.is_file() {
                Ok(file)
            } else {
                Err(format!("{own} names {}, which is no file", file.display()))
            };
        }
        let assets = set("KUBEBUILDER_ASSETS").map(|assets| assets.join(name));
        let built = checkout.join("target/testbin").join(name);
        assets.into_iter().chain([built]).find(|file| file.is_file()).ok_or_else(|| {
            format!("{name} not found: run `hack/testbin/build {module}` ({build_time} the first time), or set {own}")
        })
    }
}
