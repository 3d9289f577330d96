//! The proxy of an object.

use super::{Server, percent};
use crate::secrets::{Secret, SecretData, SecretDataError};

/// The maximum length of an address, as in Flux.
const MAX_ADDRESS: usize = 2048;

/// A proxy's address and login.
#[derive(Debug, Clone)]
pub struct Proxy {
    scheme: &'static str,
    server: Server,
    user: Option<Secret>,
    password: Option<Secret>,
}

impl Proxy {
    /// Reads a proxy secret: `address`, and optionally `username` and `password`.
    ///
    /// # Errors
    ///
    /// If there is no address, or none that git can use.
    pub fn from_secret(secret: SecretData<'_>) -> Result<Self, SecretDataError> {
        let refused = |defect: &str| SecretDataError::ProxyAddress {
            secret: secret.name.to_owned(),
            defect: defect.to_owned(),
        };
        if !secret.data.contains_key("address") {
            return Err(SecretDataError::KeyMissing { secret: secret.name.to_owned(), key: "address" });
        }
        let address = secret.line("address")?.ok_or_else(|| refused("proxy address is empty"))?;
        if address.expose().len() > MAX_ADDRESS {
            return Err(refused("proxy URL exceeds maximum length of 2048 characters"));
        }
        let text = std::str::from_utf8(address.expose())
            .map_err(|_| secret.malformed("address", "is not UTF-8: correct it"))?;
        let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        // Git and curl would resolve the name themselves with `socks5`; Go leaves that to the proxy.
        let (known, default_port) = match scheme.as_str() {
            "http" => ("http", 80),
            "https" => ("https", 443),
            "socks5" => ("socks5h", 1080),
            _ => {
                let schemes = "proxy URL must use one of the supported schemes (http, https, socks5)";
                return Err(refused(&format!("{schemes}, got '{}'", scheme.escape_default())));
            }
        };
        let not_a_url =
            || secret.malformed("address", "is not a URL with a host and a port: write http://HOST:PORT");
        let url = url::Url::parse(text).map_err(|_| not_a_url())?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(not_a_url)?;
        let server = Server { host: host.to_owned(), port: url.port().unwrap_or(default_port) };
        let part = |text: &str| {
            let bytes = percent::decode(text).ok_or_else(not_a_url)?;
            Ok((!bytes.is_empty()).then(|| Secret::new(bytes)))
        };
        let (mut user, mut password) = (part(url.username())?, part(url.password().unwrap_or_default())?);
        if let Some(given) = secret.line("username")? {
            (user, password) = (Some(given), secret.line("password")?);
        }
        Ok(Self { scheme: known, server, user, password })
    }

    /// Returns its server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the secrets of its login.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.user.iter().chain(&self.password)
    }

    /// Returns the proxy as a URL, login included: the value of git's `http.proxy`.
    pub fn to_url(&self) -> Secret {
        let Self { scheme, server: Server { host, port }, .. } = self;
        let Some(user) = &self.user else { return Secret::new(format!("{scheme}://{host}:{port}")) };
        let user = percent::encode(user.expose());
        // Always with a colon: without one, git would ask for a password.
        let password = self.password.as_ref().map(|password| percent::encode(password.expose()));
        Secret::new(format!("{scheme}://{user}:{}@{host}:{port}", password.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(data: &[(&str, &str)]) -> Result<Proxy, SecretDataError> {
        let data: BTreeMap<String, Secret> =
            data.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect();
        Proxy::from_secret(SecretData { name: "apps/proxy", data: &data })
    }

    #[test]
    fn a_proxy_becomes_a_setting_of_git() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[("address", "http://proxy:3128\n")], "http://proxy:3128"),
            (&[("address", "http://proxy/")], "http://proxy:80"),
            (&[("address", "HTTPS://proxy")], "https://proxy:443"),
            (&[("address", "socks5://10.0.0.1")], "socks5h://10.0.0.1:1080"),
            (&[("address", "http://[::1]:8080")], "http://[::1]:8080"),
            (
                &[("address", "http://p:1"), ("username", "u@x"), ("password", "a:b/c")],
                "http://u%40x:a%3Ab%2Fc@p:1",
            ),
            (&[("address", "http://p:1"), ("username", "u")], "http://u:@p:1"),
            (&[("address", "http://p:1"), ("password", "x")], "http://p:1"),
            (&[("address", "http://a:b%40@p:1")], "http://a:b%40@p:1"),
            (&[("address", "http://a:b@p:1"), ("username", "u")], "http://u:@p:1"),
        ];
        for (data, expected) in cases {
            let proxy = read(data).unwrap_or_else(|error| panic!("{data:?}: {error}"));
            assert_eq!(proxy.to_url().expose(), expected.as_bytes(), "{data:?}");
        }
    }

    #[test]
    fn a_bad_proxy_is_refused_in_one_sentence() {
        let long = format!("http://{}", "a".repeat(2048));
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[], "secret 'apps/proxy': key 'address' not found"),
            (&[("address", "")], "secret 'apps/proxy': proxy address is empty"),
            (
                &[("address", &long)],
                "secret 'apps/proxy': proxy URL exceeds maximum length of 2048 characters",
            ),
            (
                &[("address", "ftp://u:hunter2@p")],
                "secret 'apps/proxy': proxy URL must use one of the supported schemes (http, https, socks5), got 'ftp'",
            ),
            (
                &[("address", "proxy:3128")],
                "secret 'apps/proxy': proxy URL must use one of the supported schemes (http, https, socks5), got ''",
            ),
            (
                &[("address", "http://u:hunter2@p:x")],
                "secret 'apps/proxy': key 'address' is not a URL with a host and a port: write http://HOST:PORT",
            ),
            (
                &[("address", "http://p"), ("username", "a\nb")],
                "secret 'apps/proxy': key 'username' has a line break inside: give it on one line",
            ),
        ];
        for (data, expected) in cases {
            let error = read(data).unwrap_err();
            assert_eq!(error.to_string(), *expected);
        }
    }

    #[test]
    fn no_secret_shows_in_debug() {
        for data in [
            [("address", "http://p:1"), ("username", "u"), ("password", "hunter2")].as_slice(),
            &[("address", "http://u:hunter2@p:1")],
        ] {
            let shown = format!("{:?}", read(data).unwrap());
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
}
