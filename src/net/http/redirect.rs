//! Checks of redirect targets.

use url::Url;

use super::request::Request;
use crate::net::Host;

/// Returns the target of a redirect, or the reason for which it is not followed.
pub(crate) fn target(request: &Request, location: &str) -> Result<Url, &'static str> {
    let mut target = request.url.join(location).map_err(|_| "it is not a URL")?;
    if !matches!(target.scheme(), "http" | "https") {
        return Err("it is not an HTTP address");
    }
    if request.url.scheme() == "https" && target.scheme() == "http" {
        return Err("it leads from an encrypted connection to an unencrypted one");
    }
    if is_internal(&target) && !is_internal(&request.url) {
        return Err("it leads from a public server into a private network");
    }
    if request.body.is_some() && target.origin() != request.url.origin() {
        return Err("it leads to another server, which must not receive the request");
    }
    // A login in a redirect's address is ignored.
    let _ = target.set_username("");
    let _ = target.set_password(None);
    Ok(target)
}

/// Returns `true` for `localhost` and for numeric addresses of private networks or this machine.
pub(crate) fn is_internal(url: &Url) -> bool {
    url.host_str().is_some_and(|host| Host::read(host).is_internal())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_to_less_secure_or_private_addresses_are_refused() {
        let request = |url: &str| Request::get(Url::parse(url).unwrap(), 1);
        for (from, location, expected) in [
            ("https://r.example/v2/", "/v2/x", Ok("https://r.example/v2/x")),
            ("https://r.example/v2/", "https://u:p@cdn.example/x", Ok("https://cdn.example/x")),
            ("http://r.example/v2/", "https://r.example/v2/", Ok("https://r.example/v2/")),
            (
                "https://r.example/",
                "http://r.example/",
                Err("it leads from an encrypted connection to an unencrypted one"),
            ),
            (
                "https://r.example/",
                "https://169.254.169.254/",
                Err("it leads from a public server into a private network"),
            ),
            (
                "https://r.example/",
                "https://[::ffff:10.0.0.1]/",
                Err("it leads from a public server into a private network"),
            ),
            (
                "https://r.example/",
                "https://100.64.0.1/",
                Err("it leads from a public server into a private network"),
            ),
            (
                "http://r.example/",
                "http://localhost:1/",
                Err("it leads from a public server into a private network"),
            ),
            ("http://10.0.0.2/", "http://10.0.0.1/", Ok("http://10.0.0.1/")),
            ("http://10.0.0.2/", "http://100.127.0.1/", Ok("http://100.127.0.1/")),
            ("https://r.example/", "ftp://r.example/", Err("it is not an HTTP address")),
            ("https://r.example/", "https://[", Err("it is not a URL")),
        ] {
            let found = target(&request(from), location);
            assert_eq!(
                found.as_ref().map(Url::as_str).map_err(|defect| *defect),
                expected,
                "{from} {location}"
            );
        }
        let post = Request::post(Url::parse("https://t.example/").unwrap(), *b"x", 1);
        assert!(target(&post, "https://other.example/").is_err());
        assert!(target(&post, "/token").is_ok());
    }
}
