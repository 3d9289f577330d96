//! Errors of this machine: a full disk, an old git, unwritable directories.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{CHECKOUT, NONE, PUSH, refused, refused_by};
use crate::run::scene::Scene;
use crate::support::content::file;
use crate::support::fleet::tag_line;
use crate::support::git_host::Settings;
use crate::support::program::run;

/// The program under resource limits that a shell sets.
fn limited(scene: &Scene, program: &str, arguments: &[&OsStr]) -> Command {
    let tagboat = scene.command();
    let mut command = Command::new(program);
    command.args(arguments).arg(tagboat.get_program()).args(tagboat.get_args());
    command.env_clear().envs(tagboat.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(scene.root()).arg("--state").arg(scene.state());
    command
}

#[test]
fn a_disk_that_is_full() {
    // Content that does not compress, so that it exceeds every limit.
    let large = (0..400_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).wrapping_pow(3).to_le_bytes());
    let large: Vec<u8> = large.collect();
    let scene = Scene::with_files(&[file("app.yaml", tag_line("4.0.6")), file("large", large)]);
    let host = scene.serve(Settings::default());
    let full =
        format!("{CHECKOUT}: unable to fetch '{}': the disk of the mirror is full: ", host.url("fleet.git"));
    let small = "trap '' XFSZ; ulimit -f 512; exec \"$@\"";
    refused_by(&scene, &mut limited(&scene, "sh", &["-c", small, "sh"].map(OsStr::new)), &format!("{full}…"));

    // A mount namespace of its own, which needs no privileges.
    let may_mount = run(Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]));
    assert_eq!(
        may_mount.status,
        Some(0),
        "a full disk is a small tmpfs in a namespace of users, and unshare -rm does not work: {may_mount:?}; allow it \
         (sysctl kernel.apparmor_restrict_unprivileged_userns=0), or run the tests as root"
    );
    let mount = "mount -t tmpfs -o size=512k none \"$0\" && exec \"$@\"";
    let state = scene.state();
    let arguments = ["-rm", "sh", "-c", mount].map(OsStr::new).into_iter().chain([state.as_os_str()]);
    let arguments: Vec<&OsStr> = arguments.collect();
    refused_by(&scene, &mut limited(&scene, "unshare", &arguments), &format!("{full}…"));

    scene.run_with_state(NONE).with_status(0);
    assert_eq!(scene.tag("main"), "5.0.3");
}

#[test]
fn a_mirror_that_would_grow_too_large() {
    let scene = Scene::with_files(&[file("app.yaml", tag_line("4.0.6")), file("large", vec![b'x'; 100_000])]);
    let host = scene.serve(Settings::default());
    for (size, bytes) in [("1", "1"), ("1KiB", "1024")] {
        let sentence = format!(
            "{CHECKOUT}: unable to fetch '{}': the mirror would be larger than {bytes} bytes; raise --mirror-max-size if \
             the repository really is that large",
            host.url("fleet.git")
        );
        refused(&scene, ["--mirror-max-size", size], &sentence);
    }
}

#[test]
fn a_state_directory_that_cannot_be_written() {
    let scene = Scene::new();
    let _host = scene.serve(Settings::default());
    let state = scene.state();
    fs::write(&state, "").unwrap();
    let run = scene.run_with_state(NONE).with_status(1);
    let sentence =
        format!("error: cannot read the state in {}: Not a directory (os error 20)", state.display());
    assert_eq!(run.only_error(), sentence);
    fs::remove_file(&state).unwrap();
    fs::create_dir(&state).unwrap();
    fs::write(state.join("mirrors"), "").unwrap();
    let mirrors = state.join("mirrors/default.fleet.");
    let sentence = format!("{CHECKOUT}: cannot keep a mirror in {}…", mirrors.display());
    refused_by(&scene, scene.command().arg("--state").arg(&state), &sentence);
}

#[test]
fn a_directory_in_place_of_a_status_is_named_before_anything_is_pushed() {
    let scene = Scene::new();
    let _host = scene.serve(Settings::default());
    let place = "objects/ImageUpdateAutomation/default/fleet.json";
    fs::create_dir_all(scene.state().join(place)).unwrap();
    let run = scene.run_with_state(NONE).with_status(1);
    let state = scene.state();
    let sentence =
        format!("error: cannot read the state in {}: {place}: Is a directory (os error 21)", state.display());
    assert_eq!(run.only_error(), sentence);
    assert_eq!(scene.tag("main"), "4.0.6");
}

#[test]
fn a_state_that_cannot_be_written_is_one_error_for_all_automations() {
    let scene = Scene::new();
    let _host = scene.serve(Settings::default());
    let automation = fs::read_to_string(scene.root().join("manifests/automation.yaml")).unwrap();
    let mut second: serde_json::Value = serde_json::from_str(&automation).unwrap();
    second["metadata"]["name"] = "second".into();
    scene.write("second.yaml", &second.to_string());
    let objects = scene.state().join("objects");
    fs::create_dir_all(&objects).unwrap();
    // A dangling link reads as a missing file, and no directory can be made in its place.
    std::os::unix::fs::symlink("nowhere", objects.join("ImageUpdateAutomation")).unwrap();
    let run = scene.run_with_state(["--output", "json"]).with_status(1);
    let sentence = format!(
        "default/fleet: cannot save the state in {}: objects/ImageUpdateAutomation: File exists (os error 17)",
        scene.state().display()
    );
    assert_eq!(run.only_error(), sentence);
    let results = run.json()["automations"].as_array().unwrap().clone();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|result| result["errors"].as_array().unwrap().len() == 1), "{results:?}");
    assert_eq!(scene.tag("main"), "5.0.3");
}

/// A run whose PATH has no program, or only a script as git.
fn with_only(scene: &Scene, git: Option<&str>) -> Command {
    let bin = scene.root().join("bin");
    fs::create_dir_all(&bin).unwrap();
    if let Some(script) = git {
        fs::write(bin.join("git"), script).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = scene.command();
    command.env("PATH", &bin);
    command
}

#[test]
fn a_git_that_is_missing_or_too_old() {
    let scene = Scene::new();
    let host = scene.serve(Settings::default());
    let list = format!("{CHECKOUT}: unable to list '{}': git ", host.url("fleet.git"));
    let missing = format!("{list}is not installed, or not in PATH; tagboat needs git 2.32 or newer");
    refused_by(&scene, &mut with_only(&scene, None), &missing);
    let old = "#!/bin/sh\nfor word; do test \"$word\" = version && echo 'git version 2.17.1' && exit; done\n\
               echo 'error: unknown option' >&2\nexit 129\n";
    let too_old = format!("{list}2.17.1 is too old; tagboat needs git 2.32 or newer");
    refused_by(&scene, &mut with_only(&scene, Some(old)), &too_old);
    let silent = "#!/bin/sh\nfor word; do test \"$word\" = version && exit; done\necho 'error: unknown option' >&2\nexit 129\n";
    let unknown = format!("{list}of an unknown version is too old; tagboat needs git 2.32 or newer");
    refused_by(&scene, &mut with_only(&scene, Some(silent)), &unknown);
}

#[test]
fn a_git_that_dies_or_fails_without_a_message_is_reported_with_its_signal_or_status() {
    let scene = Scene::new();
    let host = scene.serve(Settings::default());
    let url = host.url("fleet.git");
    let path = std::env::var("PATH").unwrap();
    for (verb, stage, operation) in
        [("ls-remote", CHECKOUT, "list"), ("fetch", CHECKOUT, "fetch"), ("push", PUSH, "push to")]
    {
        for (end, ending) in [
            ("kill -KILL $$", "was killed by signal 9"),
            ("exit 3", "ended with status 3 and printed nothing"),
        ] {
            let script = format!(
                "#!/bin/sh\ncase \" $* \" in *\" {verb} \"*) {end};; esac\nPATH='{path}'\nexec git \"$@\"\n"
            );
            let sentence = format!("{stage}: unable to {operation} '{url}': git {verb} {ending}");
            refused_by(&scene, &mut with_only(&scene, Some(&script)), &sentence);
        }
    }
}

#[test]
fn a_git_configuration_of_the_user_that_cannot_be_read_is_named_and_no_mirror_is_lost() {
    let scene = Scene::new();
    let _host = scene.serve(Settings::default());
    scene.run_with_state(["--dry-run"]).with_status(0);
    let mirrors = || fs::read_dir(scene.state().join("mirrors")).unwrap().flatten().map(|entry| entry.path());
    let packs =
        || mirrors().map(|path| size_of_packs(&path.join("repository.git/objects/pack"))).sum::<u64>();
    let kept = packs();
    assert!(kept > 0);
    for name in [".gitconfig", ".config/git/config"] {
        let file = scene.root().join("home").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "[core\nbroken").unwrap();
        let run = scene.run_with_state(["--dry-run"]).with_status(1);
        let error = run.only_error();
        assert!(error.contains("libgit2 cannot read your configuration of git"), "{error}");
        assert!(error.contains(&format!("{}:", file.display())), "{error}");
        fs::remove_file(&file).unwrap();
    }
    assert_eq!(packs(), kept);
}

/// Returns the size of the files of a directory, in bytes.
fn size_of_packs(directory: &std::path::Path) -> u64 {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}
