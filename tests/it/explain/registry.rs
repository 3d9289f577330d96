//! Tests of `tagboat explain policy` on the tags of a real registry.
//! They cover access, images that cannot be pulled yet, and the age of images.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ago, outcomes, program, reason};
use crate::support::http_front::{Front, Reply};
use crate::support::program::{Run, run};
use crate::support::registry::Registry;

const MADE: &str = "2020-01-02T03:04:05Z";
const KIND: &str = "apiVersion: image.toolkit.fluxcd.io/v1\nkind:";

/// Returns the policy `apps/web` on the repository of a namespace.
/// The text of `metadata` and `status` is added to it.
fn policy(namespace: &str, metadata: &str, status: &str) -> String {
    format!(
        "---\n{KIND} ImagePolicy\nmetadata: {{name: web, namespace: apps{metadata}}}\n\
         spec: {{imageRepositoryRef: {{name: web, namespace: {namespace}}}, policy: {{semver: {{range: 1.x}}}}}}\n{status}"
    )
}

/// The repository of that namespace, with more of its spec.
fn repository(namespace: &str, image: &str, spec: &str) -> String {
    format!(
        "---\n{KIND} ImageRepository\nmetadata: {{name: web, namespace: {namespace}}}\n\
         spec: {{image: {image}, interval: 1m{spec}}}\n"
    )
}

fn status(image: &str, tag: &str) -> String {
    format!("status: {{latestRef: {{name: {image}, tag: {tag}}}}}\n")
}

fn explained(manifests: &str, arguments: &[&str]) -> Run {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("manifests.yaml"), manifests).unwrap();
    run(program()
        .current_dir(directory.path())
        .args(["explain", "policy", "web", "--policies", "."])
        .args(arguments))
}

fn document(manifests: &str, exit: i32) -> Value {
    explained(manifests, &["--output", "json"]).with_status(exit).json()
}

#[test]
fn a_repository_that_does_not_admit_the_policy_is_the_error_of_its_condition() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let image = format!("{}/app/web", registry.address());
    let selectors = |selectors: &str| format!(", accessFrom: {{namespaceSelectors: [{selectors}]}}");
    let labelled = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: apps, labels: {tenant: a}}\n";
    let denied = |why: &str| {
        format!(
            "failed to get the referred ImageRepository: access denied: 'images/web' can't be accessed due to {why}"
        )
    };
    let mismatch = denied("ACL labels mismatch on namespace 'apps'");
    for (spec, namespace, error) in [
        (String::new(), "", Some(denied("missing ACL labels on 'accessFrom'"))),
        (selectors(""), labelled, Some(mismatch.clone())),
        (selectors("{}"), "", None),
        (selectors("{matchLabels: {tenant: a}}"), labelled, None),
        (selectors("{matchLabels: {tenant: b}}"), labelled, Some(mismatch.clone())),
        (selectors("{matchLabels: {tenant: b}}, {matchLabels: {tenant: a}}"), labelled, None),
        (selectors("{matchLabels: {tenant: a}}"), "", Some(mismatch)),
        // Each namespace has this label, with or without a manifest of the namespace.
        (selectors("{matchLabels: {kubernetes.io/metadata.name: apps}}"), "", None),
        (selectors("{matchLabels: {kubernetes.io/metadata.name: apps}}"), labelled, None),
    ] {
        let manifests =
            format!("{}{}{namespace}", policy("images", "", ""), repository("images", &image, &spec));
        let found = document(&manifests, i32::from(error.is_some()));
        assert_eq!(found["error"], json!(error), "{spec} {namespace}");
        assert_eq!(found["latest"], error.map_or(json!("1.0.0"), |_| Value::Null));
    }
    // With a list of tags the repository is not used.
    let manifests = format!("{}{}", policy("images", "", ""), repository("images", &image, ""));
    let directory = TempDir::new().unwrap();
    let tags = directory.path().join("tags");
    fs::write(&tags, "1.0.0\n").unwrap();
    explained(&manifests, &["--tags", tags.to_str().unwrap()]).with_status(0);
}

#[test]
fn an_invalid_policy_is_an_error_before_any_request() {
    let front = Front::alone(|_| Reply::status(500));
    let image = format!("{}/app/web", front.address());
    let invalid = policy("apps", "", "").replace("1.x", "\"*-*\"");
    for manifests in [format!("{invalid}{}", repository("apps", &image, "")), invalid.clone()] {
        let found = document(&manifests, 1);
        assert_eq!(found["error"], "invalid policy: improper constraint: \"*-*\"");
        assert_eq!((&found["latest"], &found["tags"]), (&Value::Null, &json!([])));
    }
    let bad = format!("{}{}", policy("apps", "", ""), repository("apps", "https://r.io/web", ""));
    assert!(document(&bad, 1)["error"].as_str().unwrap().contains("should not include URL scheme"));
    let account =
        repository("apps", &image, ", provider: aws, serviceAccountName: sa, secretRef: {name: none}");
    let ended = explained(&format!("{}{account}", policy("apps", "", "")), &[]).with_status(1);
    assert_eq!(
        ended.only_error(),
        "error: ImageRepository apps/web: spec.serviceAccountName with spec.provider needs a token that only a cluster \
         issues, so only the controller supports it: log in as yourself with --registry-login user"
    );
    assert!(front.requests().is_empty());
}

/// An unreadable registry is the error of a document.
/// Programs get a document in spite of any error; people get the same error with advice.
#[test]
fn a_registry_that_cannot_be_read_is_the_error_of_a_document() {
    let gone = Registry::start();
    let image = format!("{}/app/web", gone.address());
    drop(gone);
    let manifests = |spec: &str| format!("{}{}", policy("apps", "", ""), repository("apps", &image, spec));
    let ended = explained(&manifests(""), &["--output", "json"]).with_status(1);
    let found = ended.json();
    let error = found["error"].as_str().unwrap();
    assert!(error.starts_with("scan failed: GET http") && error.contains("connection refused"), "{error}");
    assert_eq!(
        found,
        json!({"policy": {"namespace": "apps", "name": "web"}, "latest": null, "error": error, "tags": []})
    );
    assert_eq!(ended.only_error(), format!("error: ImageRepository apps/web: {error}"));
    let text = explained(&manifests(""), &[]).with_status(1);
    assert_eq!((text.output.as_str(), &text.errors), ("", &ended.errors));
    let found = document(&manifests(", secretRef: {name: login}"), 1);
    let error = found["error"].as_str().unwrap();
    assert!(
        error.starts_with("failed to configure authentication options: secrets \"login\" not found"),
        "{error}"
    );
    let ended = explained(&manifests(""), &["--output", "json", "--tags", "none.txt"]).with_status(1);
    assert!(ended.json()["error"].as_str().unwrap().starts_with("cannot read the tags from none.txt: "));
}

#[test]
fn advice_about_a_refused_login_is_printed_beside_the_condition() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    let guarded = registry.guarded_by_password();
    let image = format!("{}/app/web", guarded.address());
    let explained = |spec: &str, more: &str| {
        let manifests = format!("{}{}{more}", policy("apps", "", ""), repository("apps", &image, spec));
        let ended = explained(&manifests, &["--output", "json"]).with_status(1);
        let error = ended.json()["error"].as_str().unwrap().to_owned();
        let last = ended.errors.lines().last().unwrap_or_default();
        let message = last.strip_prefix(&format!("error: ImageRepository apps/web: {error}; "));
        (message.unwrap_or_else(|| panic!("{ended:?}")).to_owned(), error)
    };
    let config = json!({"auths": {guarded.address(): {"username": "u", "password": "wrong"}}});
    let secret = format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: login, namespace: apps}}\n\
         stringData: {{.dockerconfigjson: '{config}'}}\n"
    );
    let (without, condition) = explained("", "");
    assert!(
        without.starts_with("no login was sent: if the registry requires one, name a Secret"),
        "{without}"
    );
    let (with, same) = explained(", secretRef: {name: login}", &secret);
    assert!(
        with.starts_with("a login was sent and refused: check the one in the Secret apps/login"),
        "{with}"
    );
    assert_eq!(same, condition);
    let elsewhere = secret.replace(&guarded.address(), "other.example.com");
    let (missed, _) = explained(", secretRef: {name: login}", &elsewhere);
    let words = format!(
        "no login was sent: if the registry requires one, the Secret apps/login has none for {}: add it there",
        guarded.address()
    );
    assert!(missed.starts_with(&words), "{missed}");
}

/// The repository is used for its tags only.
#[test]
fn a_repository_that_cannot_be_read_is_the_error_of_a_document() {
    let manifests =
        format!("{}{}", policy("apps", "", ""), repository("apps", "r.io/web", ", provider: amazon"));
    let ended = explained(&manifests, &["--output", "json"]).with_status(1);
    let found = ended.json();
    let error = found["error"].as_str().unwrap();
    assert!(error.contains("ImageRepository apps/web is not valid at spec.provider: `amazon`"), "{error}");
    assert_eq!((&found["latest"], &found["tags"]), (&Value::Null, &json!([])));
    assert_eq!(ended.only_error(), format!("error: {error}"));
    let invalid = manifests.replace("range: 1.x", "range: '*-*'");
    assert_eq!(document(&invalid, 1)["error"], "invalid policy: improper constraint: \"*-*\"");
}

#[test]
fn an_exclusion_of_every_tag_is_reported_beside_the_condition() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", MADE);
    registry.tag("app/web", "1.0.0", ["1.1.0".to_owned()]);
    let image = format!("{}/app/web", registry.address());
    let manifests =
        format!("{}{}", policy("apps", "", ""), repository("apps", &image, ", exclusionList: ['^1', '^2']"));
    let ended = explained(&manifests, &["--output", "json"]).with_status(1);
    let error = "retrying in 30s error: no tags in database";
    assert_eq!(ended.json()["error"], error);
    let note = "the registry lists 2 tags, and spec.exclusionList of the ImageRepository apps/web (\"^1\", \"^2\") excludes all of them";
    assert_eq!(ended.errors, format!("note: {note}\napps/web: {error}\n"));
    let text = explained(&manifests, &[]).with_status(1);
    assert_eq!(text.output, format!("Policy: apps/web\nLatest: none: {error}\nNote:   {note}\n"));
}

/// Creates a registry that lists 1.0.0, 1.4.0 and 1.5.0.
/// The manifest of 1.5.0 is not there yet: requests for it get `answer`.
fn not_yet_there(registry: &Registry, answer: fn() -> Reply) -> Front {
    registry.push("app/web", "1.0.0", MADE);
    registry.tag("app/web", "1.0.0", ["1.4.0", "1.5.0"].map(str::to_owned));
    Front::before(registry.port(), move |request| {
        if request.path.ends_with("manifests/1.5.0") { answer() } else { Reply::Forward }
    })
}

#[test]
fn a_winner_that_cannot_be_pulled_yet_leaves_the_one_before() {
    let registry = Registry::start();
    let front = not_yet_there(&registry, || Reply::status(404));
    let image = format!("{}/app/web", front.address());
    let repository = repository("apps", &image, "");
    let kept = format!("{}{repository}", policy("apps", "", &status(&image, "1.0.0")));
    let ended = explained(&kept, &["--output", "json"]).with_status(0);
    let found = ended.json();
    assert_eq!((&found["latest"], &found["error"]), (&json!("1.0.0"), &Value::Null));
    assert_eq!(outcomes(&found), [("1.5.0", "candidate"), ("1.4.0", "candidate"), ("1.0.0", "latest")]);
    assert!(reason(&found, "1.5.0").starts_with("it is listed but cannot be pulled yet, so 1.0.0 stays: "));
    assert_eq!(reason(&found, "1.0.0"), "it stays, because 1.5.0 is listed but cannot be pulled yet");
    assert!(ended.only_error().starts_with("note: 1.5.0 would win; it is listed but cannot be pulled yet"));
    let text = explained(&kept, &[]).with_status(0);
    assert!(
        text.output.starts_with("Policy: apps/web\nLatest: 1.0.0\nNote:   1.5.0 would win; "),
        "{text:?}"
    );
    assert_eq!(text.errors, "");

    // The manifests have no earlier image, so the winner is selected, with a warning.
    let first = format!("{}{repository}", policy("apps", "", ""));
    let ended = explained(&first, &["--output", "json"]).with_status(0);
    let found = ended.json();
    assert_eq!((&found["latest"], &found["error"]), (&json!("1.5.0"), &Value::Null));
    assert_eq!(outcomes(&found)[0], ("1.5.0", "latest"));
    let doubt = "it is listed but cannot be pulled yet, so a controller that has announced an image before keeps that one, \
                 and announces this one if it has not; tagboat run leaves the markers alone until it can be pulled: ";
    let words = format!("the greatest of 3 candidates; {doubt}");
    assert!(reason(&found, "1.5.0").starts_with(&words), "{found:#}");
    assert!(ended.only_error().starts_with(&format!("note: 1.5.0 wins; {doubt}")), "{ended:?}");
    // A policy that needs the digest has no image to report.
    let digests = first.replace(
        "spec: {imageRepositoryRef",
        "spec: {digestReflectionPolicy: IfNotPresent, imageRepositoryRef",
    );
    let found = document(&digests, 1);
    let error = found["error"].as_str().unwrap();
    assert!(error.starts_with(&format!("failed fetching digest of {image}:1.5.0: ")), "{error}");
    assert_eq!((&found["latest"], outcomes(&found)[0]), (&Value::Null, ("1.5.0", "candidate")));

    // The current image is not checked again.
    let before = front.requests().len();
    let same = format!("{}{repository}", policy("apps", "", &status(&image, "1.5.0")));
    assert_eq!(document(&same, 0)["latest"], "1.5.0");
    assert!(front.requests()[before..].iter().all(|request| !request.path.contains("manifests")));
}

#[test]
fn any_other_answer_accepts_a_winner() {
    let registry = Registry::start();
    for answer in [|| Reply::status(403), || Reply::status(500), || Reply::Gone] {
        let front = not_yet_there(&registry, answer);
        let image = format!("{}/app/web", front.address());
        let manifests = format!("{}{}", policy("apps", "", ""), repository("apps", &image, ", timeout: 10s"));
        assert_eq!(document(&manifests, 0)["latest"], "1.5.0");
    }
    // A policy that needs the digest gets none.
    let front = not_yet_there(&registry, || Reply::status(403));
    let image = format!("{}/app/web", front.address());
    let digests = policy("apps", "", "").replace("spec: {", "spec: {digestReflectionPolicy: IfNotPresent, ");
    let found = document(&format!("{digests}{}", repository("apps", &image, "")), 1);
    let error = found["error"].as_str().unwrap();
    assert!(error.starts_with(&format!("failed fetching digest of {image}:1.5.0: ")), "{error}");
}

#[test]
fn ages_are_requested_from_the_best_tag_to_the_first_that_is_old_enough() {
    let registry = Registry::start();
    registry.push("app/web", "1.5.0", &ago(1));
    registry.push("app/web", "1.4.0", &ago(50));
    let image = registry.push("app/web", "platform", &ago(100));
    registry.push_index("app/web", "1.3.0", &image);
    registry.push("app/web", "1.2.0", &ago(1000));
    registry.push("app/web", "2.0.0", &ago(1000));
    registry.push("app/web", "1.6.0", "1970-01-01T00:00:00Z");
    let front = Front::before(registry.port(), |_| Reply::Forward);
    let name = format!("{}/app/web", front.address());
    let aged = |more: &str| {
        let annotations = format!(", annotations: {{tagboat.dev/minimum-age: 3d{more}}}");
        format!("{}{}", policy("apps", &annotations, ""), repository("apps", &name, ""))
    };
    let found = document(&aged(""), 0);
    assert_eq!(found["latest"], "1.3.0");
    assert_eq!(
        outcomes(&found),
        [
            ("1.3.0", "latest"),
            ("1.2.0", "candidate"),
            ("platform", "not-a-version"),
            ("2.0.0", "out-of-range"),
            ("1.6.0", "too-new"),
            ("1.5.0", "too-new"),
            ("1.4.0", "too-new"),
        ]
    );
    assert_eq!(reason(&found, "1.6.0"), "its age is not known, and tagboat.dev/minimum-age requires 72h");
    let reason = reason(&found, "1.4.0");
    // The seconds since the start of the test are part of the age.
    assert!(
        reason.starts_with("it is 50h ") && reason.ends_with("old, and tagboat.dev/minimum-age requires 72h"),
        "{reason}"
    );
    // Tags that cannot win were not requested.
    let asked = |tag: &str| {
        front.requests().iter().any(|request| request.path.ends_with(&format!("manifests/{tag}")))
    };
    assert!(asked("1.3.0") && asked("1.6.0") && !asked("2.0.0") && !asked("platform"));

    // An image of unknown age can be accepted by an annotation.
    let open = document(&aged(", tagboat.dev/unknown-age: accept"), 0);
    assert_eq!(open["latest"], "1.6.0");
    let all = aged("").replace("minimum-age: 3d", "minimum-age: 90d");
    let found = document(&all, 1);
    assert_eq!(found["error"], "unable to determine latest version from provided list: 5 tags are too new");
    // The current image was old enough once.
    let annotations = ", annotations: {tagboat.dev/minimum-age: 3d}";
    let counts = policy("apps", annotations, &status(&name, "1.5.0"));
    let counts = format!("{counts}{}", repository("apps", &name, ""));
    assert_eq!(document(&counts, 0)["latest"], "1.5.0");
    // Without a minimum age no age is requested.
    let before = front.requests().len();
    let plain = format!("{}{}", policy("apps", "", ""), repository("apps", &name, ""));
    assert_eq!(document(&plain, 0)["latest"], "1.6.0");
    let looks =
        front.requests()[before..].iter().filter(|request| request.path.contains("manifests")).count();
    assert_eq!(looks, 1);
}

#[test]
fn the_ages_of_all_tags_are_never_requested() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", &ago(1));
    registry.tag("app/web", "1.0.0", (1..500).map(|patch| format!("1.0.{patch}")));
    let front = Front::before(registry.port(), |_| Reply::Forward);
    let name = format!("{}/app/web", front.address());
    let annotations = ", annotations: {tagboat.dev/minimum-age: 3d}";
    let manifests = format!("{}{}", policy("apps", annotations, ""), repository("apps", &name, ""));
    let ended = explained(&manifests, &["--output", "json"]).with_status(1);
    let looks = front.requests().iter().filter(|request| request.path.contains("manifests")).count();
    assert_eq!(looks, 32);
    assert!(
        ended
            .errors
            .contains("note: only the 32 best images had their age looked up; the others count as too new")
    );
    assert_eq!(ended.json()["error"], "version list argument cannot be empty: 500 tags are too new");
}

#[test]
fn an_age_that_cannot_be_looked_up_is_not_known() {
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", &ago(1000));
    registry.push("app/web", "1.4.0", &ago(900));
    registry.push("app/web", "1.5.0", &ago(800));
    for (status, noted) in [(404, false), (403, true)] {
        let front = Front::before(registry.port(), move |request| {
            if request.path.ends_with("manifests/1.5.0") { Reply::status(status) } else { Reply::Forward }
        });
        let name = format!("{}/app/web", front.address());
        let annotations = ", annotations: {tagboat.dev/minimum-age: 3d}";
        let manifests = format!("{}{}", policy("apps", annotations, ""), repository("apps", &name, ""));
        let ended = explained(&manifests, &["--output", "json"]).with_status(0);
        let found = ended.json();
        assert_eq!(outcomes(&found), [("1.4.0", "latest"), ("1.0.0", "candidate"), ("1.5.0", "too-new")]);
        let note = "note: the age of 1.5.0 could not be looked up, so it counts as too new: ";
        assert_eq!(ended.errors.starts_with(note), noted, "{ended:?}");
    }
}
