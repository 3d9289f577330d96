//! Chromium, driven by its WebDriver.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::rest::answer::client;
use crate::support::process_reaper::ProcessReaper;

/// The key that moves the focus, in WebDriver's encoding.
pub(super) const TAB: &str = "\u{e004}";

/// The key that follows a link or submits a form.
pub(super) const ENTER: &str = "\u{e007}";

/// Timeout of any step; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one window, which ends with the value.
pub(super) struct Browser {
    /// Host and port of the driver.
    address: String,
    session: String,
    client: reqwest::Client,
    _driver: ProcessReaper,
}

impl Browser {
    /// Starts a browser with a window of 1280 by 900 pixels in light mode.
    pub(super) async fn start() -> Self {
        let (driver, port) = driver().await;
        let address = format!("127.0.0.1:{port}");
        let mut browser = Self { address, session: String::new(), client: client(), _driver: driver };
        // Root has no sandbox. The pipe ends the browser with its driver, also if the tests are killed.
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--remote-debugging-pipe"];
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        browser.session = browser.session(&capabilities).await;
        browser.show(1280, 900, "light").await;
        browser
    }

    /// Sets the size of the window, and the mode that the user prefers.
    pub(super) async fn show(&self, width: u32, height: u32, mode: &str) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": mode}]});
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// Turns the scripts of pages off.
    pub(super) async fn disable_scripts(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    }

    pub(super) async fn open(&self, url: &str) {
        self.command("url", &json!({"url": url})).await;
    }

    /// Opens a tab in front of the others, and returns its handle.
    pub(super) async fn open_tab(&self) -> String {
        let tab = self.command("window/new", &json!({"type": "tab"})).await;
        let handle = tab["handle"].as_str().unwrap().to_owned();
        self.show_tab(&handle).await;
        handle
    }

    /// Shows a tab in front of the others.
    pub(super) async fn show_tab(&self, handle: &str) {
        self.command("window", &json!({"handle": handle})).await;
        self.devtools("Page.bringToFront", json!({})).await;
    }

    /// Evaluates an expression in the page.
    pub(super) async fn evaluate(&self, expression: &str) -> Value {
        let body = json!({"script": format!("return {expression};"), "args": []});
        self.command("execute/sync", &body).await
    }

    /// The text of the page as a user sees it.
    pub(super) async fn text(&self) -> String {
        self.evaluate("document.body.innerText").await.as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true.
    pub(super) async fn until(&self, expression: &str) {
        let begin = Instant::now();
        while self.evaluate(expression).await != true {
            assert!(begin.elapsed() < PATIENCE, "{expression} is false: {}", self.text().await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Presses keys, one after the other.
    pub(super) async fn press(&self, keys: &str) {
        let presses: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                ["keyDown", "keyUp"].map(|action| json!({"type": action, "value": key.to_string()}))
            })
            .collect();
        let body = json!({"actions": [{"type": "key", "id": "keyboard", "actions": presses}]});
        self.command("actions", &body).await;
    }

    /// Saves a picture of the window.
    pub(super) async fn screenshot(&self, name: &str) {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/screenshots");
        fs::create_dir_all(&directory).unwrap();
        let picture = self.send("GET", &format!("/session/{}/screenshot", self.session), &Value::Null).await;
        let bytes = STANDARD.decode(picture.as_str().unwrap()).unwrap();
        fs::write(directory.join(format!("{name}.png")), bytes).unwrap();
    }

    /// Returns the findings of axe on the page, one text each.
    pub(super) async fn accessibility_findings(&self) -> Vec<String> {
        let script = fs::read_to_string(axe()).unwrap();
        // Its results come later, so the call is asynchronous.
        let script = format!(
            "const done = arguments[arguments.length - 1];\n{script}\n\
             axe.run(document).then((results) => done(results.violations), (error) => done([{{id: String(error), nodes: []}}]));"
        );
        let findings = self.command("execute/async", &json!({"script": script, "args": []})).await;
        let text = |finding: &Value| format!("{}: {}", finding["id"], finding["nodes"]);
        findings.as_array().unwrap().iter().map(text).collect()
    }

    /// Returns the messages of the browser since the last call.
    /// A refusal by the policy of the page is one.
    pub(super) async fn messages(&self) -> Vec<String> {
        let messages = self.command("se/log", &json!({"type": "browser"})).await;
        messages.as_array().unwrap().iter().map(ToString::to_string).collect()
    }

    async fn devtools(&self, method: &str, parameters: Value) -> Value {
        self.command("goog/cdp/execute", &json!({"cmd": method, "params": parameters})).await
    }

    async fn command(&self, command: &str, body: &Value) -> Value {
        self.send("POST", &format!("/session/{}/{command}", self.session), body).await
    }

    /// Creates a session, which starts Chromium.
    /// It may exit or time out while the machine is short of memory, so the driver is asked up to three times.
    async fn session(&self, capabilities: &Value) -> String {
        let mut failures = Vec::new();
        while failures.len() < 3 {
            let answer = self.ask("POST", "/session", capabilities).await;
            match answer["value"]["sessionId"].as_str() {
                Some(session) => return session.to_owned(),
                None => failures.push(answer),
            }
        }
        panic!("chromedriver creates no session: {failures:#?}");
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.ask(method, path, body).await;
        assert!(answer["value"].get("error").is_none(), "{path}: {answer:#}");
        answer["value"].clone()
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let url = format!("http://{}{path}", self.address);
        let request = match method {
            "POST" => self.client.post(url).json(body),
            _ => self.client.get(url),
        };
        request.send().await.unwrap().json().await.unwrap()
    }
}

/// Ends the browser. The driver alone would leave its processes.
impl Drop for Browser {
    fn drop(&mut self) {
        let Ok(mut stream) = TcpStream::connect(&self.address) else { return };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
        let (session, address) = (&self.session, &self.address);
        let request =
            format!("DELETE /session/{session} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read(&mut [0; 1024]);
    }
}

/// Starts the driver, and returns it with its port.
/// Another process may take the free port that it chose before it listens there, and then it exits; so it is
/// started up to five times.
async fn driver() -> (ProcessReaper, u16) {
    let mut command = Command::new("chromedriver");
    command.arg("--port=0").env_clear();
    for name in ["PATH", "HOME"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    let mut outputs = Vec::new();
    while outputs.len() < 5 {
        let driver = ProcessReaper::start(&command).unwrap();
        match port(&driver).await {
            Ok(port) => return (driver, port),
            Err(output) => outputs.push(output),
        }
    }
    panic!("chromedriver finds no port: {outputs:#?}");
}

/// Waits until the driver has printed its port.
///
/// The error is the output of a driver whose port was taken.
async fn port(driver: &ProcessReaper) -> Result<u16, String> {
    let begin = Instant::now();
    loop {
        let output = driver.output();
        let port = output.split("started successfully on port ").nth(1);
        if let Some(port) = port.and_then(|rest| rest.split('.').next()?.parse().ok()) {
            return Ok(port);
        }
        if output.contains("port not available") {
            return Err(output);
        }
        assert!(
            begin.elapsed() < PATIENCE,
            "chromedriver does not start; `hack/setup` installs it: {output}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The script of axe, which `hack/setup` installs.
fn axe() -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/axe/node_modules/axe-core/axe.min.js");
    assert!(file.is_file(), "{} is missing; run hack/setup", file.display());
    file
}
