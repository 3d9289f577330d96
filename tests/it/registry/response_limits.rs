//! Tests of the limits on responses.
//! Responses of any shape are read in bounded memory, and a list keeps only the valid tags.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use tagboat::registry::{ListOptions, Listed};

use super::{anonymous, registries, tags};
use crate::support::http_front::{Front, Reply};
use crate::support::program::tagboat;

const LIST: &str = "/v2/app/web/tags/list";

/// The largest page that is read.
const PAGE: usize = 32 * 1024 * 1024;

/// A registry with this answer to listings, by query.
fn registry(list: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Front {
    Front::alone(move |request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        LIST => list(&request.query),
        _ => Reply::status(404),
    })
}

fn page(names: impl IntoIterator<Item = String>) -> Reply {
    let names: Vec<String> = names.into_iter().collect();
    Reply::body(200, serde_json::json!({ "tags": names }).to_string())
}

#[tokio::test]
async fn invalid_tag_names_are_left_out_and_counted() {
    let names = ["1.0.0", ".hidden", "-1", "a b", "", "\u{e9}", "_", "v1"].map(str::to_owned);
    let long = "x".repeat(129);
    let front = registry(move |_| page(names.iter().cloned().chain([long.clone()])));
    let listed = registries().list(anonymous(&front.address(), "app/web"), None).await.unwrap();
    let Listed::Tags(listing) = listed else { panic!("nothing was known before") };
    assert_eq!(listing.tags.iter().collect::<Vec<_>>(), ["v1", "_", "1.0.0"]);
    assert_eq!(listing.warning().as_deref(), Some("6 invalid tag names were ignored"));
    let ended = crate::support::program::run(tagboat().args([
        "scan",
        &format!("{}/app/web", front.address()),
        "--output",
        "json",
        "--limit",
        "1",
    ]));
    assert!(ended.errors.contains(": 6 invalid tag names were ignored\n"), "{ended:?}");
    assert_eq!(ended.json()["count"], 3);
}

/// A page of names that are no tags is followed by the next page.
/// Invalid names fill a page like any others, and the next page starts after the last one.
#[tokio::test]
async fn pages_of_invalid_tag_names_are_followed_by_the_next() {
    let front = registry(|query| match query.split_once("last=") {
        None => page((0..1000).map(|number| format!(".{number:04}"))),
        Some((_, ".0999")) => page((0..1000).map(|number| format!("-{number:04}"))),
        Some((_, "-0999")) => page(["1.0.0".to_owned(), "1.1.0".to_owned()]),
        Some((_, other)) => panic!("{other}"),
    });
    assert_eq!(tags(anonymous(&front.address(), "app/web")).await.unwrap(), ["1.1.0", "1.0.0"]);
    // A registry that does not support `last` sends the same page again, and has no others.
    let front = registry(|_| page((0..1000).map(|number| format!(".{number:04}"))));
    let repository = registries().repository(anonymous(&front.address(), "app/web"));
    let listed = repository.list(ListOptions::default()).await.unwrap();
    let Listed::Tags(listing) = listed else { panic!("nothing was known before") };
    assert_eq!((listing.tags.len(), listing.left_out), (0, 1000));
    assert_eq!(front.requests_for(LIST).len(), 2);
}

/// The peak of resident memory of a program, in MiB, and its standard error.
fn peak(command: &mut Command) -> (u64, String) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (status, exe) = (format!("/proc/{}/status", child.id()), format!("/proc/{}/exe", child.id()));
    let this_program = std::fs::read_link("/proc/self/exe").unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        // A child that is about to execute the program still shows the memory of this process.
        if std::fs::read_link(&exe).is_ok_and(|running| running == this_program) {
            continue;
        }
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        peak = peak.max(kilobytes.unwrap_or(0) / 1024);
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut words = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut words).unwrap();
    (peak, words)
}

fn repeated(before: &str, one: &str, after: &str) -> Vec<u8> {
    let number = (PAGE - before.len() - after.len() - 1) / one.len();
    let mut text = String::with_capacity(PAGE);
    text.push_str(before);
    (0..number).for_each(|_| text.push_str(one));
    text.push_str(after);
    text.into_bytes()
}

/// As many different tags as fit into a page.
fn numbered() -> Vec<u8> {
    let mut text = String::with_capacity(PAGE);
    text.push_str("{\"tags\":[");
    for number in 0..240_000 {
        let _ = write!(text, "\"{number:0>120}\",");
    }
    text.push_str("\"z\"]}");
    text.into_bytes()
}

#[test]
fn a_page_of_any_shape_takes_no_more_than_100_mib_beyond_itself() {
    for (shape, body, expected) in [
        ("errors of numbers", repeated("{\"errors\":[", "0,", "0]}"), "unexpected status code 200 OK"),
        ("errors of objects", repeated("{\"errors\":[", "{},", "{}]}"), "unexpected status code 200 OK"),
        ("empty names", repeated("{\"tags\":[", "\"\",", "\"\"]}"), "invalid tag names were ignored"),
        ("one tag again and again", repeated("{\"tags\":[", "\"a\",", "\"a\"]}"), ""),
        ("nested lists", repeated("{\"x\":", "[", ""), "it is not a list of tags (the JSON ends too early"),
        ("escapes", repeated("{\"tags\":[\"", "\\u0041", "\"]}"), "1 invalid tag name was ignored"),
        ("members", repeated("{", "\"a\":0,", "\"a\":0}"), ""),
        ("different tags", numbered(), ""),
    ] {
        let front = registry(move |_| Reply::body(200, body.clone()));
        let image = format!("{}/app/web", front.address());
        let (peak, words) = peak(tagboat().args(["scan", &image, "--limit", "1"]));
        assert!(words.contains(expected), "{shape}: {words}");
        // The body, the program itself, and the memory for reading the body.
        assert!(peak < 32 + 30 + 100, "{shape}: {peak} MiB");
    }
}
