//! The real registry (distribution), on loopback, with a directory of its own.
//!
//! ```text
//! let registry = Registry::start();
//! registry.push("app/web", "1.0.0", "2026-01-02T03:04:05Z");
//! registry.tag("app/web", "1.0.0", (0..2500).map(|number| format!("0.{number}.0")));
//! let guarded = registry.guarded_by_password();
//! ```

mod token_server;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::built_program::REGISTRY;
use super::process_reaper::ProcessReaper;
pub(crate) use token_server::TokenServer;

/// The user who may pull from a registry with a login.
pub(crate) const USER: &str = "robot";
pub(crate) const PASSWORD: &str = "hunter2";

/// User and password as a line of a password file.
const PASSWORD_LINE: &str = "robot:$2b$04$abcdefghijklmnopqrstuuV3duMsC0HpUex6N9qapiuOHHWkwRXVm\n";

/// A running registry without a login.
pub(crate) struct Registry {
    server: Server,
    data: TempDir,
}

/// The process of a registry; several of them may serve the same data.
pub(crate) struct Server {
    port: u16,
    _reaper: ProcessReaper,
    _directory: TempDir,
}

impl Server {
    /// Host and port, as in names of images.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn start(data: &Path, files: &[(&str, &str)], authentication: &str) -> Self {
        let tried = (0..3).find_map(|_| Self::try_start(data, files, authentication));
        tried.expect("of three free ports one stays free until the registry takes it")
    }

    fn try_start(data: &Path, files: &[(&str, &str)], authentication: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let configuration = format!(
            "version: 0.1\nlog: {{level: warn, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\n\
             http: {{addr: \"127.0.0.1:{port}\", secret: any}}\n{authentication}\n",
            data.display()
        );
        fs::write(directory.path().join("config.yml"), configuration).unwrap();
        let mut command = Command::new(REGISTRY.file());
        command.env_clear().env("OTEL_TRACES_EXPORTER", "none").env("HOME", directory.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.args(["serve", "config.yml"]).current_dir(directory.path());
        let reaper = ProcessReaper::start(&command).unwrap();
        let begin = Instant::now();
        while !is_registry(port) {
            let output = reaper.output();
            if output.contains("address already in use") {
                return None;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "the registry does not start: {output}");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(Self { port, _reaper: reaper, _directory: directory })
    }
}

/// Returns true if a registry answers at a port.
/// Another server may have taken the port meanwhile.
fn is_registry(port: u16) -> bool {
    let ask = || {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /v2/ HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(4096).read_to_string(&mut answer)?;
        std::io::Result::Ok(answer.to_ascii_lowercase().contains("docker-distribution-api-version"))
    };
    ask().unwrap_or(false)
}

impl std::ops::Deref for Registry {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Registry {
    pub(crate) fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        Self { server: Server::start(data.path(), &[], ""), data }
    }

    /// Starts another server for the same repositories, which wants a user and a password.
    pub(crate) fn guarded_by_password(&self) -> Server {
        let files = [("htpasswd", PASSWORD_LINE)];
        Server::start(self.data.path(), &files, "auth: {htpasswd: {realm: test, path: htpasswd}}")
    }

    /// Starts another server for the same repositories, which wants tokens.
    pub(crate) fn guarded_by(&self, tokens: &TokenServer) -> Server {
        let authentication = format!(
            "auth: {{token: {{realm: \"{}\", service: {}, issuer: {}, rootcertbundle: tokens.crt}}}}",
            tokens.realm(),
            token_server::SERVICE,
            token_server::ISSUER,
        );
        Server::start(self.data.path(), &[("tokens.crt", &tokens.certificate)], &authentication)
    }

    /// Pushes an image with a creation time, and returns the digest of its manifest.
    pub(crate) fn push(&self, repository: &str, tag: &str, created: &str) -> String {
        let configuration = json!({"created": created, "architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}});
        let configuration = configuration.to_string();
        let descriptor = self.blob(repository, configuration.as_bytes());
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": descriptor, "size": configuration.len()},
            "layers": [],
        });
        self.manifest(repository, tag, &manifest)
    }

    /// Pushes an index of one image that exists already, and returns its digest.
    pub(crate) fn push_index(&self, repository: &str, tag: &str, image: &str) -> String {
        let path = self.data.path().join(format!(
            "docker/registry/v2/blobs/sha256/{}/{}/data",
            &image["sha256:".len()..][..2],
            &image["sha256:".len()..]
        ));
        let size = fs::metadata(path).unwrap().len();
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{
                "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": image, "size": size,
                "platform": {"os": "linux", "architecture": "amd64"},
            }],
        });
        self.manifest(repository, tag, &index)
    }

    /// Adds any number of tags to the image of a tag.
    pub(crate) fn tag(&self, repository: &str, tag: &str, more: impl IntoIterator<Item = String>) {
        let tags =
            self.data.path().join(format!("docker/registry/v2/repositories/{repository}/_manifests/tags"));
        let link = fs::read(tags.join(tag).join("current/link")).unwrap();
        for name in more {
            let place = tags.join(name).join("current");
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("link"), &link).unwrap();
        }
    }

    /// Deletes a tag; the image stays.
    pub(crate) fn remove(&self, repository: &str, tag: &str) {
        let tags =
            self.data.path().join(format!("docker/registry/v2/repositories/{repository}/_manifests/tags"));
        fs::remove_dir_all(tags.join(tag)).unwrap();
    }

    fn blob(&self, repository: &str, bytes: &[u8]) -> String {
        let digest = digest(bytes);
        let place = self.send("POST", &format!("/v2/{repository}/blobs/uploads/"), "text/plain", b"");
        let location = place.headers().get("location").unwrap().to_str().unwrap().to_owned();
        let location =
            url::Url::parse(&format!("http://{}", self.address())).unwrap().join(&location).unwrap();
        let question =
            format!("{}?{}&digest={digest}", location.path(), location.query().unwrap_or_default());
        self.send("PUT", &question, "application/octet-stream", bytes);
        digest
    }

    fn manifest(&self, repository: &str, tag: &str, manifest: &serde_json::Value) -> String {
        let bytes = manifest.to_string().into_bytes();
        let kind = manifest["mediaType"].as_str().unwrap();
        self.send("PUT", &format!("/v2/{repository}/manifests/{tag}"), kind, &bytes);
        digest(&bytes)
    }

    fn send(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> reqwest::Response {
        let url = format!("http://{}{path}", self.address());
        let (method, kind, body) = (method.parse().unwrap(), kind.to_owned(), body.to_vec());
        // A test may run in an async runtime, whose threads must not block on another runtime.
        let sent = std::thread::spawn(move || {
            let _ = rustls::crypto::ring::default_provider().install_default();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let client = reqwest::Client::builder().no_proxy().build().unwrap();
                client.request(method, url).header("content-type", kind).body(body).send().await.unwrap()
            })
        });
        let answer = sent.join().unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        answer
    }
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
