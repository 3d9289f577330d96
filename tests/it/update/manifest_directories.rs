//! Tests of `--policies DIR`.
//! They cover the files of a directory that are read as manifests, and the warnings about others.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use crate::support::fleet::{Fleet, podinfo, tag_line};
use crate::support::manifests::policy;
use crate::support::program::{Run, update};

/// The largest file of manifests, see docs/limits.md.
const LIMIT: u64 = 32 * 1024 * 1024;

const GROUP: &str = "image.toolkit.fluxcd.io";

/// The warnings of a successful run, without the paths in front.
#[track_caller]
fn warnings(fleet: &Fleet) -> Vec<String> {
    let ended = fleet.update([""; 0]).with_status(0);
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"), "{ended:?}");
    let root = format!("{}/", fleet.manifests().display());
    ended.errors.lines().map(|line| line.replace(&root, "")).collect()
}

/// Makes a sparse file of `size` bytes, with `text` at `at`.
fn large_file(path: &Path, size: u64, text: &str, at: u64) {
    let file = File::create(path).unwrap();
    file.set_len(size).unwrap();
    file.write_all_at(text.as_bytes(), at).unwrap();
}

#[test]
fn files_that_name_no_group_of_ours_are_not_parsed() {
    let fleet = Fleet::small();
    let write = |name: &str, content: &[u8]| {
        let path = fleet.manifests().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    write("chart/templates/app.yaml", b"{{- if .Values.on }}\nkind: [ {{ end }}\n");
    assert_eq!(
        warnings(&fleet),
        [
            "warning: skipped a file without an object of image.toolkit.fluxcd.io or source.toolkit.fluxcd.io: \
          chart/templates/app.yaml"
        ]
    );
    write("a.yaml", b"\xff\xfea\0:\0");
    write("b.yml", b"a: b: c\n");
    write("empty.yaml", b"");
    write("notes.txt", b"image.toolkit.fluxcd.io: [ is no YAML, and this is no YAML file");
    write(".git/config.yaml", b"image.toolkit.fluxcd.io: [");
    assert_eq!(
        warnings(&fleet),
        [
            "warning: skipped 4 files without an object of image.toolkit.fluxcd.io or source.toolkit.fluxcd.io: \
          a.yaml, b.yml, chart/templates/app.yaml, …"
        ]
    );
}

/// kubectl accepts JSON, too.
#[test]
fn a_manifest_in_json_counts() {
    let fleet = Fleet::small();
    fs::remove_file(fleet.manifests().join("manifests.yaml")).unwrap();
    let write = |name: &str, text: &str| fs::write(fleet.manifests().join(name), text).unwrap();
    write("package.json", "{\"name\": \"some Secret of somebody else\"}");
    write("broken.json", "{");
    write(
        "policy.json",
        "{\n\t\"apiVersion\": \"image.toolkit.fluxcd.io/v1\",\n\t\"kind\": \"ImagePolicy\",\n\
         \t\"metadata\": {\"namespace\": \"default\", \"name\": \"podinfo\"},\n\
         \t\"spec\": {\"imageRepositoryRef\": {\"name\": \"podinfo\"}, \"policy\": {\"semver\": {\"range\": \"\\u003e=1.0.0\"}}},\n\
         \t\"status\": {\"latestRef\": {\"name\": \"ghcr.io/stefanprodan/podinfo\", \"tag\": \"5.0.3\"}}\n}\n",
    );
    assert_eq!(warnings(&fleet), [""; 0]);
    write("policy.json", "{\"apiVersion\": \"image.toolkit.fluxcd.io/v1\", \"kind\": ");
    let ended = fleet.update([""; 0]).with_status(1);
    assert!(ended.only_error().contains("manifests/policy.json:1:"), "{ended:?}");
}

#[test]
fn a_broken_file_that_names_a_group_of_ours_is_an_error() {
    for group in [GROUP, "source.toolkit.fluxcd.io"] {
        let fleet = Fleet::small();
        let template = format!("apiVersion: {group}/v1\n{{{{- if .Values.on }}}}\nkind: [ {{{{ end }}}}\n");
        fs::write(fleet.manifests().join("template.yaml"), template).unwrap();
        let ended = fleet.update([""; 0]).with_status(1);
        assert!(ended.only_error().contains("manifests/template.yaml:"), "{ended:?}");
        assert!(ended.only_error().contains("the manifest is not YAML"), "{ended:?}");
        assert_eq!(fleet.text("app.yaml"), tag_line("4.0.6"));
    }
}

#[test]
fn a_file_beyond_the_size_that_names_no_group_is_passed_over() {
    let fleet = Fleet::small();
    large_file(&fleet.manifests().join("large.yaml"), LIMIT + 1, "image.toolkit.example.com", 0);
    let found = warnings(&fleet);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("warning: skipped a file") && found[0].ends_with(": large.yaml"),
        "{found:?}"
    );
}

/// A file beyond the maximum size that names a group is an error.
///
/// The position of the name makes no difference: the file is searched in chunks, and the name may cross two
/// of them.
#[test]
fn a_file_beyond_the_size_that_names_a_group_is_an_error() {
    let size = LIMIT + 1;
    for at in [0, 256 * 1024 - 5, 512 * 1024 - 30, size - GROUP.len() as u64] {
        let fleet = Fleet::small();
        large_file(&fleet.manifests().join("large.yaml"), size, GROUP, at);
        let ended = fleet.update([""; 0]).with_status(1);
        for word in ["manifests/large.yaml: ", "33554433 bytes"] {
            assert!(ended.only_error().contains(word), "{at}: {ended:?}");
        }
        assert_eq!(fleet.text("app.yaml"), tag_line("4.0.6"));
    }
}

#[test]
fn a_file_beyond_the_size_that_is_named_itself_is_an_error() {
    let fleet = Fleet::small();
    let large = fleet.root().join("large.yaml");
    large_file(&large, LIMIT + 1, "", 0);
    let ended = update(&fleet.directory(), &large, [""; 0]).with_status(1);
    for word in ["large.yaml: ", "more than 33554432 bytes"] {
        assert!(ended.only_error().contains(word), "{ended:?}");
    }
}

/// Runs with links beside the manifests; returns the warnings about them.
fn linked(links: &[(&str, &str)]) -> Vec<String> {
    let fleet = Fleet::small();
    fs::write(fleet.root().join("outside.yaml"), policy("default", "outside", "ab", "v1")).unwrap();
    fs::create_dir(fleet.manifests().join("inner")).unwrap();
    for (name, target) in links {
        symlink(target, fleet.manifests().join(name)).unwrap();
    }
    warnings(&fleet)
}

#[test]
fn links_that_lead_nowhere_or_out_of_the_directory_are_named() {
    for (target, cause) in [
        ("nowhere.yaml", "the link's target does not exist"),
        ("inner/nowhere.yaml", "the link's target does not exist"),
        ("../outside.yaml", "the link leads out of the directory"),
        ("/etc/hostname", "the link leads out of the directory"),
        ("link.yaml", "the link leads back to itself"),
        ("inner", "the link's target is a directory"),
        (".git/a.yaml", "it leads into .git"),
    ] {
        let wanted = format!("warning: link.yaml: no manifests were read there: {cause}");
        assert_eq!(linked(&[("link.yaml", target)]), [wanted], "{target}");
    }
}

#[test]
fn every_link_that_is_left_alone_gets_a_line_of_its_own() {
    let found = linked(&[("a.yaml", "nowhere"), ("b.yaml", "../outside.yaml"), ("c.txt", "nowhere")]);
    let names: Vec<&str> = found.iter().filter_map(|line| line.split(": ").nth(1)).collect();
    assert_eq!(names, ["a.yaml", "b.yaml"]);
}

/// Symbolic links within the directory are read once.
///
/// A link to a file that is read anyway is no second object, and one to a file elsewhere in the directory is
/// followed.
#[test]
fn links_within_the_directory_are_read_once() {
    assert_eq!(linked(&[("again.yaml", "manifests.yaml"), ("third.yaml", "again.yaml")]), [""; 0]);
}

/// A mounted ConfigMap is read.
/// The kubelet mounts it with the data in a directory of its own, behind two links.
#[test]
fn a_mounted_config_map_is_read() {
    let fleet = Fleet::small();
    let (mount, data) = (fleet.root().join("mount"), "..2024_01_01_00_00_00.1");
    fs::create_dir_all(mount.join(data)).unwrap();
    fs::write(mount.join(data).join("policies.yaml"), podinfo()).unwrap();
    symlink(data, mount.join("..data")).unwrap();
    symlink("..data/policies.yaml", mount.join("policies.yaml")).unwrap();
    for path in [mount.clone(), mount.join("policies.yaml")] {
        fs::write(fleet.directory().join("app.yaml"), tag_line("4.0.6")).unwrap();
        let ended: Run = update(&fleet.directory(), &path, [""; 0]).with_status(0);
        assert_eq!(ended.errors, "");
        assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
    }
}
