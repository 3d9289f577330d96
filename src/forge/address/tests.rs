use std::collections::BTreeMap;

use super::*;
use crate::error::chain;
use crate::git::LocalPaths;

/// The address for a git URL and annotations, as text.
fn address(url: &str, annotations: &[(&str, &str)]) -> Result<ForgeAddress, AddressError> {
    let named = |(name, value): &(&str, &str)| (format!("tagboat.dev/{name}"), (*value).to_owned());
    let annotations: BTreeMap<String, String> = annotations.iter().map(named).collect();
    let settings = GitRepositorySettings::from_annotations(&annotations).unwrap();
    ForgeAddress::of(&RemoteUrl::parse(url, LocalPaths::Refused).unwrap(), &settings)
}

fn shown(url: &str, annotations: &[(&str, &str)]) -> String {
    match address(url, annotations) {
        Ok(ForgeAddress { kind, api, repository, .. }) => format!("{kind} {api} {}", repository.full_name()),
        Err(error) => format!("error: {}", chain(&error)),
    }
}

#[test]
fn the_forge_is_chosen_by_the_exact_host() {
    let secret = [("forge-secret", "token")];
    for (url, expected) in [
        ("https://github.com/acme/fleet", "github https://api.github.com acme/fleet"),
        ("https://GitHub.com:443/acme/fleet.git", "github https://api.github.com acme/fleet"),
        ("https://user:secret@github.com/acme/fleet", "github https://api.github.com acme/fleet"),
        ("ssh://git@github.com/acme/fleet.git", "github https://api.github.com acme/fleet"),
        ("ssh://git@ssh.github.com:443/acme/fleet.git", "github https://api.github.com acme/fleet"),
        ("https://octo.ghe.com/acme/fleet", "github https://api.octo.ghe.com acme/fleet"),
        ("ssh://octo@octo.ghe.com/acme/fleet", "github https://api.octo.ghe.com acme/fleet"),
        ("https://gitlab.com/acme/team/fleet.git", "gitlab https://gitlab.com/api/v4 acme/team/fleet"),
        ("ssh://git@gitlab.com/acme/fleet.git", "gitlab https://gitlab.com/api/v4 acme/fleet"),
        ("https://gitea.com/acme/fleet", "gitea https://gitea.com/api/v1 acme/fleet"),
        ("https://codeberg.org/acme/fleet", "forgejo https://codeberg.org/api/v1 acme/fleet"),
        ("https://bitbucket.org/acme/fleet", "bitbucket https://api.bitbucket.org/2.0 acme/fleet"),
        (
            "https://dev.azure.com/acme/web%20shop/_git/fleet",
            "azure-devops https://dev.azure.com/acme acme/web shop/fleet",
        ),
        (
            "https://acme@dev.azure.com/acme/_git/fleet",
            "azure-devops https://dev.azure.com/acme acme/fleet/fleet",
        ),
        (
            "https://acme.visualstudio.com/shop/_git/fleet",
            "azure-devops https://dev.azure.com/acme acme/shop/fleet",
        ),
        (
            "https://acme.visualstudio.com/DefaultCollection/shop/_git/fleet",
            "azure-devops https://dev.azure.com/acme acme/shop/fleet",
        ),
        (
            "https://acme.visualstudio.com/_git/fleet",
            "azure-devops https://dev.azure.com/acme acme/fleet/fleet",
        ),
        (
            "ssh://git@ssh.dev.azure.com/v3/acme/shop/fleet",
            "azure-devops https://dev.azure.com/acme acme/shop/fleet",
        ),
        (
            "ssh://acme@vs-ssh.visualstudio.com/v3/acme/shop/fleet",
            "azure-devops https://dev.azure.com/acme acme/shop/fleet",
        ),
    ] {
        assert_eq!(shown(url, &secret), expected, "{url}");
    }
    for unknown in [
        "https://git.example/acme/fleet",
        "https://github.com.example/acme/fleet",
        "https://www.github.com/acme/fleet",
        "https://github.com:8443/acme/fleet",
        "http://github.com/acme/fleet",
        "ssh://git@github.com:2222/acme/fleet",
        "ssh://git@ssh.github.com/acme/fleet",
        "https://ssh.github.com/acme/fleet",
        "https://ghe.com/acme/fleet",
        "https://a.b.ghe.com/acme/fleet",
        "https://notghe.com/acme/fleet",
        "https://gitlab.example/acme/fleet",
        "ssh://git@dev.azure.com/v3/acme/shop/fleet",
        "https://ssh.dev.azure.com/v3/acme/shop/fleet",
        "https://visualstudio.com/acme/_git/fleet",
        "https://127.0.0.1:3000/acme/fleet",
    ] {
        let error = address(unknown, &secret).unwrap_err();
        assert!(matches!(error, AddressError::UnknownHost { .. }), "{unknown}: {error}");
    }
    assert_eq!(
        shown("https://git.example:8443/acme/fleet", &[]),
        "error: the host git.example:8443 of the git URL is no known forge: add the annotation tagboat.dev/forge to the \
         GitRepository, with one of github, gitlab, gitea, forgejo, bitbucket, bitbucket-data-center, azure-devops"
    );
}

#[test]
fn other_hosts_have_the_api_on_the_git_server() {
    for (url, forge, expected) in [
        ("https://git.example/acme/fleet", "github", "github https://git.example/api/v3 acme/fleet"),
        ("https://git.example:8443/a/b/c.git", "gitlab", "gitlab https://git.example:8443/api/v4 a/b/c"),
        ("http://git.example:3000/acme/fleet", "gitea", "gitea http://git.example:3000/api/v1 acme/fleet"),
        ("http://git.example/acme/fleet", "forgejo", "forgejo http://git.example/api/v1 acme/fleet"),
        ("https://[::1]:3000/acme/fleet", "gitea", "gitea https://[::1]:3000/api/v1 acme/fleet"),
        ("ssh://git@git.example:2222/acme/fleet", "gitea", "gitea https://git.example/api/v1 acme/fleet"),
        ("https://git.example/acme/fleet", "bitbucket", "bitbucket https://git.example/2.0 acme/fleet"),
        (
            "https://git.example/scm/ACME/fleet.git",
            "bitbucket-data-center",
            "bitbucket-data-center https://git.example/rest/api/latest ACME/fleet",
        ),
        (
            "https://git.example/a/bitbucket/scm/~ann/fleet.git",
            "bitbucket-data-center",
            "bitbucket-data-center https://git.example/a/bitbucket/rest/api/latest ~ann/fleet",
        ),
        // A project or repository of this name was refused.
        (
            "https://git.example/scm/scm/fleet.git",
            "bitbucket-data-center",
            "bitbucket-data-center https://git.example/rest/api/latest scm/fleet",
        ),
        (
            "https://git.example/code/scm/OPS/scm.git",
            "bitbucket-data-center",
            "bitbucket-data-center https://git.example/code/rest/api/latest OPS/scm",
        ),
        (
            "https://git.example/scm/scm/scm/scm",
            "bitbucket-data-center",
            "bitbucket-data-center https://git.example/scm/rest/api/latest scm/scm",
        ),
        (
            "ssh://git@git.example:7999/ACME/fleet.git",
            "bitbucket-data-center",
            "bitbucket-data-center https://git.example/rest/api/latest ACME/fleet",
        ),
        (
            "https://git.example/tfs/acme/shop/_git/fleet",
            "azure-devops",
            "azure-devops https://git.example/tfs/acme acme/shop/fleet",
        ),
    ] {
        assert_eq!(shown(url, &[("forge", forge), ("forge-secret", "token")]), expected, "{url}");
    }
}

#[test]
fn the_url_of_the_api_can_be_given() {
    for (url, forge, api, expected) in [
        (
            "https://git.example/acme/fleet",
            "github",
            "https://api.example/v3/",
            "github https://api.example/v3 acme/fleet",
        ),
        (
            "https://git.example/code/acme/fleet.git",
            "gitea",
            "https://git.example/code/api/v1",
            "gitea https://git.example/code/api/v1 acme/fleet",
        ),
        (
            "https://git.example/code/acme/fleet.git",
            "gitlab",
            "/code/api/v4",
            "gitlab https://git.example/code/api/v4 acme/fleet",
        ),
        (
            "ssh://git@git.example:2222/acme/fleet",
            "forgejo",
            "https://git.example:8443/api/v1",
            "forgejo https://git.example:8443/api/v1 acme/fleet",
        ),
        (
            "http://git.example:3000/acme/fleet",
            "gitea",
            "http://git.example:3000",
            "gitea http://git.example:3000 acme/fleet",
        ),
        (
            "https://github.com/acme/fleet",
            "github",
            "https://proxy.example/github/",
            "github https://proxy.example/github acme/fleet",
        ),
    ] {
        let annotations = [("forge", forge), ("forge-url", api), ("forge-secret", "token")];
        assert_eq!(shown(url, &annotations), expected, "{url} {api}");
    }
    for (api, cause) in [
        ("http://git.example/api/v1", "uses http"),
        ("https://user:secret@git.example/api/v1", "has a login in it"),
        ("https://git.example/api/v1?x=1", "has a query"),
        ("https://git.example/api/v1#x", "has a query"),
        ("https://git.example/api/../v1", "has the part `.` or `..`"),
        ("https://git.example/api/%2e%2E/v1", "has the part `.` or `..`"),
        ("https://git.example/api//v1", "has an empty part"),
        ("https://git.example/api/%2f/v1", "an escape of one of / ? # %"),
        ("https://git.example\\api", "has a backslash"),
        ("/api/./v1", "has the part `.` or `..`"),
        ("https://", "is no URL of a server"),
        ("https:///api/v1", "is no URL of a server"),
        ("https://git.example:99999/api", "is no URL of a server"),
    ] {
        let shown = shown("https://git.example/acme/fleet", &[("forge", "gitea"), ("forge-url", api)]);
        let start = "error: the annotation tagboat.dev/forge-url cannot be used: it";
        assert!(shown.starts_with(start) && shown.contains(cause), "{api}: {shown}");
        assert!(!shown.contains("secret@"), "{shown}");
    }
}

#[test]
fn no_path_leads_to_another_resource() {
    for (path, cause) in [
        ("acme", "has too few or too many parts"),
        ("acme/fleet/more", "has too few or too many parts"),
        ("acme/.git", "has too few or too many parts"),
        ("acme/...git", "has too few or too many parts"),
        ("acme/fleet/", "has an empty part"),
        ("acme//fleet", "has an empty part"),
        ("acme/%20", "has an empty part"),
        ("", "has an empty part"),
        ("acme/./fleet", "has the part"),
        ("acme/%2e%2e", "has the part"),
        ("acme/%2E", "has the part"),
        ("acme/fleet%2Fx", "has a backslash, a control character, bytes that are no text"),
        ("acme/fleet%5cx", "has a backslash, a control character, bytes that are no text"),
        ("acme/fleet%3fx", "has a backslash, a control character, bytes that are no text"),
        ("acme/fleet%252e", "has a backslash, a control character, bytes that are no text"),
        ("acme/fleet%00", "has a backslash, a control character, bytes that are no text"),
        ("acme/%ff", "has a backslash, a control character, bytes that are no text"),
    ] {
        let shown = shown(&format!("https://gitea.com/{path}"), &[]);
        let start = "error: the git URL is not that of a repository at gitea, which has URLs like";
        assert!(
            shown.starts_with(start) && shown.contains(&format!(": its path {cause}")),
            "{path}: {shown}"
        );
    }
    let long = format!("https://gitea.com/acme/{}", "a".repeat(256));
    let deep = format!("https://gitlab.com/{}fleet", "a/".repeat(40));
    for url in [long.as_str(), &deep] {
        assert!(shown(url, &[]).contains("is too long"), "{url}");
    }
    // Git passes a query of an ssh URL to the server as a part of the path.
    for path in ["acme/fleet?x", "acme/fleet#x"] {
        let shown = shown(&format!("ssh://git@gitea.com/{path}"), &[("forge-secret", "token")]);
        assert!(shown.contains("has a query"), "{path}: {shown}");
    }
    for (url, forge) in [
        ("https://git.example/ACME/fleet.git", "bitbucket-data-center"),
        ("https://git.example/scm/fleet.git", "bitbucket-data-center"),
        ("https://dev.azure.com/acme/shop/fleet", "azure-devops"),
        ("https://dev.azure.com/_git/fleet", "azure-devops"),
        ("https://dev.azure.com/acme/shop/_git/fleet/more", "azure-devops"),
        ("https://gitlab.com/fleet", "gitlab"),
    ] {
        let shown = shown(url, &[("forge", forge)]);
        assert!(shown.contains("has too few or too many parts"), "{url}: {shown}");
    }
}

#[test]
fn ssh_needs_a_secret_and_says_which_lines_to_add() {
    assert_eq!(
        shown("ssh://git@github.com/acme/fleet", &[]),
        "error: the git URL uses ssh, whose key is no login at the API of github: create a Secret with a `token` in the \
         namespace of the GitRepository, and add its name to the GitRepository:\n\
         metadata:\n  annotations:\n    tagboat.dev/forge-secret: NAME"
    );
    assert_eq!(
        shown("https://codeberg.org/acme/fleet", &[("forge", "gitea")]),
        "error: the annotation tagboat.dev/forge is gitea, and codeberg.org is forgejo: remove the annotation"
    );
    let directory = RemoteUrl::parse("file:///srv/fleet.git", LocalPaths::Under("/".as_ref())).unwrap();
    let error = ForgeAddress::of(&directory, &GitRepositorySettings::default()).unwrap_err();
    assert_eq!(error, AddressError::Local);
}

#[test]
fn only_github_has_graphql() {
    for (url, forge, graphql) in [
        ("https://github.com/a/b", "github", Some("https://api.github.com/graphql")),
        ("https://octo.ghe.com/a/b", "github", Some("https://api.octo.ghe.com/graphql")),
        ("https://git.example/a/b", "github", Some("https://git.example/api/graphql")),
        ("https://git.example/a/b", "gitlab", None),
    ] {
        let address = address(url, &[("forge", forge)]).unwrap();
        assert_eq!(address.graphql().as_deref(), graphql, "{url}");
    }
}

/// The git URL was blamed for a path of the API that does not match.
#[test]
fn a_path_of_the_api_that_does_not_match_the_git_url_is_named_with_the_right_one() {
    for (url, api, expected) in [
        ("https://git.example/code/acme/fleet", "https://git.example/api/v1", "/code/api/v1"),
        ("https://git.example/code/acme/fleet", "/other/api/v1", "/code/api/v1"),
        ("https://git.example/a/b/acme/fleet", "/a/api/v1", "/a/b/api/v1"),
    ] {
        let found = shown(url, &[("forge", "gitea"), ("forge-url", api)]);
        let end = format!("which has the API at {expected}: write {expected}");
        let start = "error: the annotation tagboat.dev/forge-url cannot be used: it does not match";
        assert!(found.starts_with(start) && found.ends_with(&end), "{url} {api}: {found}");
        assert!(!shown(url, &[("forge", "gitea"), ("forge-url", expected)]).starts_with("error"), "{url}");
    }
    // The URL of another server shows nothing of the git URL.
    let found = shown(
        "https://git.example/code/acme/fleet",
        &[("forge", "gitea"), ("forge-url", "https://api.example/v1")],
    );
    assert!(found.starts_with("error: the git URL is not that of a repository at gitea"), "{found}");
}
