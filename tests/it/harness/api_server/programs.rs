//! Programs are found as by envtest, and a missing one is reported in one sentence.

use std::ffi::OsString;
use std::path::Path;

use crate::support::built_program::{ETCD, KUBE_APISERVER};

fn touch(file: &Path) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, "").unwrap();
}

#[test]
fn the_first_directory_with_the_program_wins() {
    let root = tempfile::tempdir().unwrap();
    let (own, assets) = (root.path().join("own/server"), root.path().join("assets"));
    let built = root.path().join("target/testbin/kube-apiserver");
    for file in [&own, &assets.join("kube-apiserver"), &built] {
        touch(file);
    }
    let find = |set: &[(&str, &Path)]| {
        let value =
            |name: &str| set.iter().find(|(own, _)| *own == name).map(|(_, value)| OsString::from(value));
        KUBE_APISERVER.find(value, root.path())
    };
    let (first, second) =
        (("TEST_ASSET_KUBE_APISERVER", own.as_path()), ("KUBEBUILDER_ASSETS", assets.as_path()));
    assert_eq!(find(&[first, second]), Ok(own.clone()));
    assert_eq!(find(&[second]), Ok(assets.join("kube-apiserver")));
    assert_eq!(find(&[]), Ok(built.clone()));
    // As in a shell that empties variables without removing them.
    assert_eq!(find(&[("TEST_ASSET_KUBE_APISERVER", Path::new(""))]), Ok(built.clone()));
    // A bundle of another tool may lack one of the programs.
    assert_eq!(find(&[("KUBEBUILDER_ASSETS", root.path())]), Ok(built));
}

#[test]
fn a_missing_program_is_reported_with_advice() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(
        ETCD.find(|_| None, root.path()).unwrap_err(),
        "etcd not found: run `hack/testbin/build kubernetes` (about 7 minutes the first time), or set TEST_ASSET_ETCD"
    );
    let named = |name: &str| (name == "TEST_ASSET_ETCD").then(|| OsString::from("/nowhere/etcd"));
    assert_eq!(
        ETCD.find(named, root.path()).unwrap_err(),
        "TEST_ASSET_ETCD names /nowhere/etcd, which is no file"
    );
}
