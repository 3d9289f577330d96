use super::*;

fn parse(text: &str) -> Result<RemoteUrl, RemoteUrlError> {
    RemoteUrl::parse(text, LocalPaths::Refused)
}

fn parse_local(text: &str) -> Result<RemoteUrl, RemoteUrlError> {
    RemoteUrl::parse(text, LocalPaths::Under(Path::new("/work tree/fleet")))
}

fn argument(url: &RemoteUrl) -> &str {
    url.to_argument().to_str().unwrap()
}

#[test]
fn user_info_is_removed_and_the_rest_stays_unchanged() {
    let cases: &[(&str, &str, Option<&str>, Option<&str>)] = &[
        ("https://github.com/acme/fleet", "https://github.com/acme/fleet", None, None),
        (
            "https://GitHub.com:443//a/%7Eb/~c/./d.git/",
            "https://GitHub.com:443//a/%7Eb/~c/./d.git/",
            None,
            None,
        ),
        ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x", None, None),
        ("http://[::1]:8080/x", "http://[::1]:8080/x", None, None),
        ("https://host", "https://host", None, None),
        ("https://u@host/x", "https://host/x", Some("u"), None),
        ("https://u:p@host/x", "https://host/x", Some("u"), Some("p")),
        ("https://u:p%40%2F:q@host/x", "https://host/x", Some("u"), Some("p@/:q")),
        ("https://u@corp:p@ss@host/x", "https://host/x", Some("u@corp"), Some("p@ss")),
        ("https://:p@host/x", "https://host/x", None, Some("p")),
        ("https://@host/x", "https://host/x", None, None),
        ("https://u:@host/x@y:z", "https://host/x@y:z", Some("u"), None),
        ("https://host/größe", "https://host/größe", None, None),
        ("ssh://git@host/a b?c#d.git", "ssh://git@host/a b?c#d.git", Some("git"), None),
        ("ssh://host:2222/~/x", "ssh://host:2222/~/x", None, None),
        ("ssh://git:p@host:22/x", "ssh://git@host:22/x", Some("git"), Some("p")),
        ("ssh://a.corp@my_host/x@y/[z]", "ssh://a.corp@my_host/x@y/[z]", Some("a.corp"), None),
    ];
    for (text, expected, user, password) in cases {
        let url = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(argument(&url), *expected, "{text}");
        assert_eq!(url.to_string(), *expected, "{text}");
        assert_eq!(format!("{url:?}"), format!("RemoteUrl({expected:?})"), "{text}");
        assert_eq!(url.user(), *user, "{text}");
        assert_eq!(url.password().map(Secret::expose), password.map(str::as_bytes), "{text}");
    }
}

#[test]
fn local_paths_are_accepted_only_if_allowed() {
    let cases = [
        ("/srv/fleet.git", "/srv/fleet.git"),
        ("./remote.git", "/work tree/fleet/remote.git"),
        ("remote", "/work tree/fleet/remote"),
        ("../r:x", "/work tree/fleet/../r:x"),
        ("./a://b", "/work tree/fleet/a:/b"),
        ("file:///srv/a%20b", "file:///srv/a%20b"),
    ];
    for (text, expected) in cases {
        let url = parse_local(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(argument(&url), expected, "{text}");
        assert_eq!(url.transport(), Transport::Local, "{text}");
        let error = parse(text).unwrap_err();
        assert!(matches!(error, RemoteUrlError::Local { .. }), "{text}: {error}");
    }
    assert!(!parse_local("/a").unwrap().is_same_origin(&parse_local("/a").unwrap()));
}

#[test]
fn unsupported_urls_are_refused_in_one_sentence() {
    let cases = [
        ("", "the repository URL is empty: give an http, https or ssh URL"),
        ("git://host/x", "the repository URL 'git://host/x' has the scheme 'git': use http, https or ssh"),
        (
            "ftp://u:p@host/x",
            "the repository URL 'ftp://••••@host/x' has the scheme 'ftp': use http, https or ssh",
        ),
        (
            "HTTPS://host/x",
            "the repository URL 'HTTPS://host/x' has the scheme 'HTTPS': use http, https or ssh",
        ),
        (
            "ext::sh -c evil",
            "the repository URL 'ext::sh -c evil' has the scheme 'ext::': use http, https or ssh",
        ),
        (
            "http::https://h/",
            "the repository URL 'http::https://h/' has the scheme 'http::': use http, https or ssh",
        ),
        (
            "git@github.com:acme/fleet.git",
            "the repository URL 'git@github.com:acme/fleet.git' is the short form of SSH: write ssh://git@github.com/acme/fleet.git",
        ),
        ("host:/srv/x", "the repository URL 'host:/srv/x' is the short form of SSH: write ssh://host/srv/x"),
        (
            "u:p@host/x",
            "the repository URL '••••@host/x' is the short form of SSH: write ssh://USER@HOST/PATH",
        ),
        ("git@[h]@h:x", "the repository URL '••••@h:x' is the short form of SSH: write ssh://USER@HOST/PATH"),
        ("-x", "the repository URL '-x' begins with '-', which reads as an option"),
        ("--upload-pack=x", "the repository URL '--upload-pack=x' begins with '-', which reads as an option"),
        (
            "ssh://-oProxyCommand=x/y",
            "the repository URL 'ssh://-oProxyCommand=x/y' has a host that begins with '-', which reads as an option",
        ),
        ("https://h/x\n", "the repository URL 'https://h/x\\n' has a control character: remove it"),
        ("https:///x", "the repository URL 'https:///x' names no host"),
        ("https://u:p@/x", "the repository URL 'https://••••@/x' names no host"),
        ("https://:80/x", "the repository URL 'https://:80/x' names no host"),
        ("https://h/x?y", "the repository URL 'https://h/x?••••' has a query or a fragment: remove it"),
        ("https://h/x#y", "the repository URL 'https://h/x#••••' has a query or a fragment: remove it"),
        ("https://h/a b", "the repository URL 'https://h/a b' has a space: write it as %20"),
        (
            "https://h/a/../b",
            "the repository URL 'https://h/a/../b' has '..' in its path: write the path that is meant",
        ),
        (
            "https://h/100%",
            "the repository URL 'https://h/100%' has a '%' that does not begin an escape: write it as %25",
        ),
        (
            "https://u:100%@h/",
            "the repository URL 'https://••••@h/' has a '%' in its user info that does not begin an escape: write it as %25",
        ),
        (
            "https://u:a%0ab@h/",
            "the repository URL 'https://••••@h/' has a control character in its user info: remove it",
        ),
        (
            "https://münchen.de/x",
            "the repository URL 'https://münchen.de/x' has a host name beyond ASCII: write its form that begins with 'xn--'",
        ),
        ("ssh://h", "the repository URL 'ssh://h' has no path: write ssh://USER@HOST/PATH"),
        (
            "ssh://-x@h/y",
            "the repository URL 'ssh://••••@h/y' has a user name with a character that ssh refuses: correct it",
        ),
        (
            "ssh://a;b@h/y",
            "the repository URL 'ssh://••••@h/y' has a user name with a character that ssh refuses: correct it",
        ),
        ("/srv/x", "the repository URL '/srv/x' is a path of this machine: use http, https or ssh"),
        (
            "file:///srv/x",
            "the repository URL 'file:///srv/x' is a path of this machine: use http, https or ssh",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    let error = parse_local("file://host/x").unwrap_err();
    assert!(
        error.to_string().ends_with("names a host, which a file URL cannot: write file:///PATH"),
        "{error}"
    );
}

/// Git connects to the host behind the first `@[`.
/// It decodes the URL before it looks for that host.
#[test]
fn urls_that_git_reads_with_another_host_are_refused() {
    for text in [
        "ssh://git@[169.254.169.254]@203.0.113.7/x.git",
        "ssh://git@[127.0.0.1]@203.0.113.7:2222/x.git",
        "ssh://git%40[127.0.0.1]@203.0.113.7/x",
        "ssh://git%40%5b127.0.0.1%5D@203.0.113.7/x",
        "ssh://git:p@[127.0.0.1]@203.0.113.7/x",
        "ssh://[127.0.0.1]@203.0.113.7/x",
        "ssh://a@b@203.0.113.7/x",
        "ssh://a%40b@203.0.113.7/x",
        "ssh://a]@203.0.113.7/x",
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains("has '@', '[' or ']' in its user info"), "{text}: {error}");
    }
    for text in [
        "ssh://203.0.113.7/a@[127.0.0.1]/x",
        "ssh://git@203.0.113.7/a@[127.0.0.1]/x",
        "ssh://203.0.113.7:22/%40%5B127.0.0.1]/x",
        "ssh://203.0.113.7/100%/@%5b127.0.0.1]/x",
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains("has '@[' in its path"), "{text}: {error}");
    }
    for text in ["git@[127.0.0.1]@203.0.113.7:x", "git@[203.0.113.7]:x", "[git@203.0.113.7:22]:x"] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error, RemoteUrlError::ShortForm { .. }), "{text}: {error}");
    }
}

/// The advice for `git@[h]@h:x` was a URL that is refused as well.
#[test]
fn a_url_that_is_advised_can_be_used() {
    for text in [
        "git@github.com:acme/fleet.git",
        "host:~/x",
        "host:x:y",
        "git@[h]@h:x",
        "git@h@h:x",
        "git@[2001:db8::1]:x",
        "[git@203.0.113.7:22]:x",
        "a b@host:x",
        "git@:x",
        "git@ho st:x",
        "git@häuser.example:x",
    ] {
        let RemoteUrlError::ShortForm { suggestion, .. } = parse(text).unwrap_err() else { panic!("{text}") };
        assert!(suggestion == "ssh://USER@HOST/PATH" || parse(&suggestion).is_ok(), "{text}: {suggestion}");
    }
}

#[test]
fn a_port_is_a_number() {
    for text in [
        "ssh://git@github.com:acme/fleet",
        "https://h:/x",
        "https://h:0/x",
        "https://h:65536/x",
        "https://::1/x",
        "https://[::1]8/x",
        "https://h:+1/x",
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(
            error.contains(if text.contains("::1/") { "names no host" } else { "port number" }),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_host_is_read_as_curl_and_ssh_read_it() {
    for text in [
        "https://a\\b/x",
        "https://a%2eb/x",
        "https://[::1/x",
        "https://[x]/x",
        "ssh://a b/x",
        "ssh://$(x)/y",
        "https://256.1.1.1/x",
        "https://a,b/x",
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains("has a host that is neither a name nor an address"), "{text}: {error}");
    }
}

#[test]
fn a_password_with_a_slash_is_not_shown() {
    for text in ["https://u:hun/ter2@host/x", "https://u:hun?ter2@host/x", "u:hun/ter2@host:x"] {
        let error = parse(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hun"), "{error}");
    }
}

#[test]
fn same_origin_is_scheme_host_and_port() {
    let url = parse("https://u:p@Git.Example.com/a").unwrap();
    for (other, expected) in [
        ("https://git.example.com:443/b", true),
        ("https://git.example.com/a.git", true),
        ("http://git.example.com/a", false),
        ("https://git.example.com:8443/a", false),
        ("https://example.com/a", false),
        ("ssh://git.example.com:443/a", false),
    ] {
        assert_eq!(url.is_same_origin(&parse(other).unwrap()), expected, "{other}");
    }
    assert_eq!(url.to_origin().unwrap(), "https://git.example.com:443");
    assert_eq!(parse("http://[0:0::1]/").unwrap().to_origin().unwrap(), "http://[::1]:80");
}

#[test]
fn a_redirect_target_becomes_a_repository_url() {
    let url = parse("https://u:p@host/acme/fleet").unwrap();
    let tail = "info/refs?service=git-upload-pack";
    for (location, expected, keeps_login) in [
        (format!("https://host/acme/fleet.git/{tail}"), "https://host/acme/fleet.git", true),
        (format!("https://host:443/new/{tail}#x"), "https://host/new", true),
        (format!("/new//~x/%7Ey.git/{tail}"), "https://host/new//~x/%7Ey.git", true),
        (format!("https://evil:x@host/new/{tail}"), "https://host/new", true),
        (format!("//other/new/{tail}"), "https://other/new", false),
        (format!("https://a:b@other/new/{tail}"), "https://other/new", false),
        (format!("http://host/acme/fleet/{tail}"), "http://host/acme/fleet", false),
        (format!("../../x/{tail}"), "https://host/acme/x", true),
    ] {
        let target = url.redirected(&location).unwrap_or_else(|error| panic!("{location}: {error}"));
        assert_eq!(argument(&target), expected, "{location}");
        assert_eq!(url.is_same_origin(&target), keeps_login, "{location}");
        assert_eq!(
            (target.user(), target.password().is_some()),
            if keeps_login { (Some("u"), true) } else { (None, false) }
        );
    }
    for location in [
        "https://host/login?return=%2Finfo%2Frefs",
        "/",
        "",
        "javascript:x",
        "file:///info/refs",
        "ssh://h/x/info/refs",
        "https://u:hunter2@[/info/refs",
        "/a\r\nb/info/refs",
    ] {
        let error = url.redirected(location).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{location}: {error}");
    }
    assert!(parse("ssh://git@host/x").unwrap().redirected("/info/refs").is_err());
}
