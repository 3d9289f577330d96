//! Differential test: renders random templates with Go's engine and with ours and compares the results.
//!
//! Usage: differential ORACLE [COUNT [SEED]]
//!
//! ORACLE is the program of `hack/oracle/template`; `make differential` builds it and runs this. Each template on which
//! the two differ is printed with both answers, and the exit status is then 1.

#[path = "../../tests/it/data/mod.rs"]
mod data;
mod grammar;
mod signatures;

use std::env;
use std::io::{BufRead, BufReader, Lines, Write, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use serde_json::{Value, json};
use tagboat_go_template::Template;

use grammar::Grammar;

/// The largest number of differences that are printed.
const MAX_SHOWN: usize = 40;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().expect("the first argument is the oracle's program");
    let number =
        |text: Option<String>, otherwise: u64| text.map_or(otherwise, |text| text.parse().expect("a number"));
    let count = number(arguments.next(), 100_000);
    let seed = number(arguments.next(), 1);
    let mut oracle = Oracle::start(&path);
    let mut grammar = Grammar::new(seed);
    let (mut wrong, mut rendered, mut died) = (0, 0, 0);
    for _ in 0..count {
        let name = grammar.data();
        let template = grammar.template(name);
        let Some(answer) = oracle.ask(&json!({ "data": name, "template": template })) else {
            // A dict that contains itself overflows Go's stack; our engine must survive it.
            drop(render(name, &template));
            died += 1;
            oracle = Oracle::start(&path);
            continue;
        };
        let theirs = match answer["error"].as_str() {
            Some(error) => Err(without_addresses(error)),
            None => Ok(without_addresses(answer["text"].as_str().unwrap_or_default())),
        };
        rendered += usize::from(theirs.is_ok());
        let ours = render(name, &template);
        // Output that is not UTF-8 comes as base64; the table covers it, and this program skips it.
        if answer["bytes"].is_string() || theirs == ours || is_on_purpose(&ours) {
            continue;
        }
        wrong += 1;
        if wrong <= MAX_SHOWN {
            say(&format!("{name} {template:?}\n  Go:   {theirs:?}\n  ours: {ours:?}"));
        }
    }
    say(&format!("{count} templates, {rendered} of them rendered by Go, {wrong} differ, Go died of {died}"));
    ExitCode::from(u8::from(wrong > 0))
}

fn render(name: &str, template: &str) -> Result<String, String> {
    let rendered =
        Template::parse("commit message", template).and_then(|template| template.render(&data::named(name)));
    match rendered {
        Ok(bytes) => Ok(without_addresses(&String::from_utf8_lossy(&bytes))),
        Err(error) => Err(without_addresses(&error.to_string())),
    }
}

/// Returns the text with every address replaced by the same one.
/// Go's addresses differ from run to run.
fn without_addresses(text: &str) -> String {
    let mut out = String::new();
    let mut parts = text.split("0x");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.chars().take_while(|c| matches!(c, '0'..='9' | 'a'..='f')).count();
        out.push_str(if digits >= 6 { "0xADDRESS" } else { "0x" });
        out.push_str(if digits >= 6 { &part[digits..] } else { part });
    }
    out
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // The process may have exited already because of the last request.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Go program that renders the templates.
struct Oracle {
    child: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Oracle {
    fn start(path: &str) -> Self {
        // In some cases in which our engine fails at a limit, Go would use all memory of the machine.
        let mut child = Command::new("sh")
            .args(["-c", "ulimit -v 2000000 && exec \"$0\" -serve", path])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the oracle starts");
        let requests = child.stdin.take().expect("standard input is piped");
        let answers = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
        Self { child, requests, answers }
    }

    /// Returns the answer; `None` if the process died of the request.
    fn ask(&mut self, request: &Value) -> Option<Value> {
        writeln!(self.requests, "{request}").ok()?;
        let answer = self.answers.next()?.ok()?;
        Some(serde_json::from_str(&answer).expect("the oracle writes JSON"))
    }
}

/// Returns whether the failure is an intended difference from Go.
fn is_on_purpose(ours: &Result<String, String>) -> bool {
    ours.as_ref().is_err_and(|error| error.contains("the limit of") || error.contains("levels"))
}

fn say(text: &str) {
    writeln!(stdout(), "{text}").expect("standard output takes text");
}
