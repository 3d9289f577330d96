//! Each kind of login over HTTP, and special requests of git.

use super::Fleet;
use crate::support::certificates::Authority;
use crate::support::content::file;
use crate::support::git_host::{Access, GitHost, Operation, Settings};
use crate::support::git_program::Person;

fn settings(access: Access) -> Settings {
    Settings { access, tls: None }
}

/// Clones, pushes and lists as an admitted person, and fails as a stranger.
#[track_caller]
fn works_for(person: &Person, settings: Settings, stranger: &Person, words: &str) {
    let fleet = Fleet::new();
    let host = GitHost::start(fleet.root.path(), settings);
    let url = host.url("fleet.git");
    let clone = person.clone_bare(&url, &fleet.root.path().join("clone.git"));
    assert_eq!(clone.log("main"), fleet.repository.log("main"));
    let commit = clone.commit("main", "Second", &[file("app.yaml", "tag: 2\n")]);
    person.push(&clone, "main").with_status(0);
    assert_eq!(fleet.repository.id("main"), Some(commit));
    assert_eq!(fleet.repository.file("main", "app.yaml"), b"tag: 2\n");
    assert_eq!(host.requests_for(Operation::Push).len(), 1);
    fleet.repository.assert_sound();
    let refused = stranger.list(&url).with_status(128);
    assert!(refused.errors.contains(words), "{refused:?}");
}

#[test]
fn a_host_without_authentication_admits_everybody() {
    let nobody = Person::anonymous().setting("protocol.http.allow", "never");
    works_for(&Person::anonymous(), Settings::default(), &nobody, "not allowed");
}

#[test]
fn a_password_is_demanded() {
    let person = Person::basic("bot", "secret");
    for (stranger, words) in [
        (Person::basic("bot", "wrong"), "Authentication failed"),
        (Person::anonymous(), "terminal prompts disabled"),
        (Person::bearer("secret"), "terminal prompts disabled"),
    ] {
        works_for(&person, settings(Access::basic("bot", "secret")), &stranger, words);
    }
}

#[test]
fn a_bearer_token_is_demanded() {
    let stranger = Person::bearer("wrong");
    let words = "terminal prompts disabled";
    works_for(&Person::bearer("secret"), settings(Access::bearer("secret")), &stranger, words);
}

#[test]
fn tls_of_a_private_authority() {
    let (authority, other) = (Authority::new(), Authority::new());
    let person = Person::basic("bot", "secret");
    let settings = Settings { access: Access::basic("bot", "secret"), tls: Some(authority.server(false)) };
    let stranger = person.clone().trusting(other.certificate_file());
    let person = person.trusting(authority.certificate_file());
    works_for(&person, settings, &stranger, "certificate verification failed");
}

#[test]
fn a_client_certificate_is_demanded() {
    let authority = Authority::new();
    let settings = Settings { access: Access::Anonymous, tls: Some(authority.server(true)) };
    let without = Person::anonymous().trusting(authority.certificate_file());
    let person = without.clone().showing(&authority.issue("bot"));
    works_for(&person, settings, &without, "unable to access");
}

#[test]
fn a_large_push_comes_in_chunks_after_a_probe() {
    let fleet = Fleet::new();
    let host = GitHost::start(fleet.root.path(), settings(Access::basic("bot", "secret")));
    let person = Person::basic("bot", "secret");
    let clone = person.clone_bare(&host.url("fleet.git"), &fleet.root.path().join("clone.git"));
    // Content that hardly compresses, three times as large as git's buffer.
    let mut state = 1u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    });
    let noise: Vec<u8> = noise.take(3 << 20).collect();
    clone.commit("main", "Large", &[file("large", noise.clone())]);
    person.push(&clone, "main").with_status(0);
    assert_eq!(fleet.repository.file("main", "large"), noise);
    let pushes = host.requests_for(Operation::Push);
    assert_eq!(pushes.len(), 1, "the probe is none: {pushes:?}");
    assert_eq!(pushes[0].request.header("transfer-encoding"), Some("chunked"));
    assert!(pushes[0].request.body_size > noise.len());
    let probe = host.requests().into_iter().find(|record| record.request.body_size == 4).expect("a probe");
    assert_eq!((probe.operation, probe.request.method.as_str()), (None, "POST"));
}

#[test]
fn a_body_that_waits_for_leave_gets_it() {
    let fleet = Fleet::new();
    let host = GitHost::start(fleet.root.path(), Settings::default());
    let person = Person::anonymous().setting("http.extraHeader", "Expect: 100-continue");
    person.clone_bare(&host.url("fleet.git"), &fleet.root.path().join("clone.git"));
    let fetches = host.requests_for(Operation::Fetch);
    assert!(fetches.iter().all(|record| record.request.header("expect").is_some()), "{fetches:?}");
}

#[test]
fn compressed_bodies_and_both_protocols_are_passed_on() {
    let fleet = Fleet::new();
    for number in 0..40 {
        fleet.repository.commit(&format!("branch-{number}"), &format!("{number}"), &[]);
    }
    let host = GitHost::start(fleet.root.path(), Settings::default());
    for (version, commands) in [("2", vec!["ls-refs", "fetch"]), ("0", vec![])] {
        let before = host.requests().len();
        let person = Person::anonymous().setting("protocol.version", version);
        let clone = person.clone_bare(&host.url("fleet.git"), &fleet.root.path().join(version));
        assert!(clone.id("refs/heads/branch-39").is_some());
        let requests = &host.requests()[before..];
        let zipped =
            requests.iter().filter(|record| record.request.header("content-encoding") == Some("gzip"));
        assert_eq!(zipped.count(), 1, "{requests:?}");
        let protocol = (version == "2").then_some("version=2");
        assert_eq!(requests[0].request.header("git-protocol"), protocol);
        let found: Vec<_> = requests.iter().filter_map(|record| record.request.command.as_deref()).collect();
        assert_eq!(found, commands[..commands.len().min(found.len())]);
    }
}

#[test]
fn hosts_record_their_own_requests() {
    let fleet = Fleet::new();
    let hosts = [(); 4].map(|()| GitHost::start(fleet.root.path(), settings(Access::bearer("secret"))));
    std::thread::scope(|scope| {
        for (place, host) in hosts.iter().enumerate() {
            let person = Person::bearer("secret").setting("http.userAgent", format!("person {place}"));
            scope.spawn(move || person.list(&host.url("fleet.git")).with_status(0));
        }
    });
    for (place, host) in hosts.iter().enumerate() {
        let requests = host.requests();
        assert!(!requests.is_empty());
        for record in requests {
            assert_eq!(record.request.header("user-agent"), Some(format!("person {place}").as_str()));
            assert_eq!(record.request.authorization(), Some("Bearer secret"));
            assert_eq!(record.answer, Some(200));
        }
    }
}

#[test]
fn a_path_may_be_percent_encoded_and_must_stay_below_the_root() {
    let fleet = Fleet::new();
    let below = fleet.root.path().join("a b");
    std::fs::create_dir(&below).unwrap();
    let host = GitHost::start(&below, Settings::default());
    std::os::unix::fs::symlink(fleet.repository.path(), below.join("fl eet.git")).unwrap();
    let person = Person::anonymous();
    person.list(&host.url("fl%20eet.git")).with_status(0);
    person.list(&host.url("none.git")).with_status(128);
    person.list(&host.url("%2e%2e/fleet.git")).with_status(128);
}
