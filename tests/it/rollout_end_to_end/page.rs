//! The web pages as lines of text, and the lines that a status must give.
//!
//! Symbols are left out: they repeat the states.

use jiff::Timestamp;
use serde_json::Value;

/// Returns the lines of the page of a deployment, without its steps.
pub(super) fn of_deployment(html: &str, name: &str) -> Vec<String> {
    let (head, rest) =
        between(html, &format!("<h1>{name}</h1>"), "</main>").split_once("<section>").unwrap_or_default();
    let components = rest.split_once("</section>").map_or("", |(_, components)| components);
    [lines(head), lines(components)].concat()
}

/// Returns the lines that the page of a deployment must have.
pub(super) fn lines_of(status: &Value) -> Vec<String> {
    let mut lines = vec![text(&status["state"]), pods(&status["progress"])];
    lines.extend(since(status));
    lines.extend(if status["error"].is_object() { message(status) } else { cause(status) });
    let image = format!("{}:{}", text(&status["target"]["name"]), text(&status["target"]["tag"]));
    lines.extend(fact("Image", &image));
    lines.extend(fact("Revision", &text(&status["revision"])));
    lines.push("Components".to_owned());
    for component in array(&status["components"]) {
        lines.extend([text(&component["name"]), text(&component["state"])]);
        let has_image = component["state"] != "pending" && component["reason"].is_null();
        let ready = component["updatedReady"].as_i64().filter(|_| has_image).unwrap_or(0);
        lines.push(format!("{ready}/{} pods", component["desired"]));
        lines.extend(since(component));
        lines.extend(message(component));
        for (label, field) in [
            ("Image", "image"),
            ("Reason", "reason"),
            ("Marker", "place"),
            ("Automation", "automation"),
            ("Applied by", "applier"),
            ("Applied revision", "appliedRevision"),
            ("Last deployed", "lastDeployed"),
        ] {
            lines.extend(fact(label, &text(&component[field])));
        }
    }
    lines.push("History".to_owned());
    for entry in array(&status["deployHistory"]) {
        lines.push(text(&entry["version"]));
        lines.extend(["last deployed".to_owned(), time(&entry["lastDeployed"])]);
        lines.extend(fact("Objects", &entry["objectCount"].to_string()));
        lines.extend(fact("Digest", &text(&entry["digest"])));
        lines.extend(fact("Commit", text(&entry["commit"]).get(..7).unwrap_or_default()));
    }
    if array(&status["deployHistory"]).is_empty() {
        lines.push("Nothing was deployed yet.".to_owned());
    }
    lines
}

/// Returns the lines of a deployment in the list.
pub(super) fn of_row(html: &str, name: &str) -> Vec<String> {
    lines(between(html, &format!("\">{name}</a>"), "</li>"))
}

/// Returns the lines that a deployment must have in the list.
pub(super) fn row_of(status: &Value) -> Vec<String> {
    let mut lines = vec![text(&status["state"]), text(&status["target"]["tag"]), pods(&status["progress"])];
    lines.extend(since(status));
    lines.extend(cause(status));
    lines
}

/// Returns the steps of the page, as `NAME PROGRESS` with the lines about each.
pub(super) fn steps(html: &str) -> Vec<(String, Vec<String>)> {
    let items = between(html, "<ol class=\"steps\">", "</ol>").split("<li class=\"").skip(1);
    let step = |item: &str| {
        let (progress, rest) = item.split_once("\">").unwrap();
        let lines = lines(rest);
        (format!("{} {progress}", lines[0]), lines[1..].to_vec())
    };
    items.map(step).collect()
}

/// Returns the error of a deployment, or that of its worst component, with its code.
fn cause(status: &Value) -> Option<String> {
    let worst = &status["components"][0];
    let parts = match (&status["error"], &worst["error"]) {
        (error, _) if error.is_object() => vec![text(&error["code"]), text(&error["message"])],
        (_, error) if error.is_object() => {
            vec![text(&worst["name"]), text(&error["code"]), text(&error["message"])]
        }
        _ => vec![text(&worst["name"]), text(&worst["reason"]), text(&worst["message"])],
    };
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    (parts.len() > 1).then(|| parts.join(": "))
}

/// Returns the error as a sentence, or else the message; nothing without both.
fn message(of: &Value) -> Option<String> {
    let error = &of["error"];
    let sentence =
        || format!("{}: {} ({})", text(&error["code"]), text(&error["message"]), text(&error["source"]));
    let message = if error.is_object() { sentence() } else { text(&of["message"]) };
    Some(message).filter(|message| !message.is_empty())
}

/// Returns the label and the value of a fact; nothing without a value.
fn fact(label: &str, value: &str) -> Vec<String> {
    if value.is_empty() { Vec::new() } else { vec![label.to_owned(), value.to_owned()] }
}

fn since(of: &Value) -> [String; 2] {
    ["since".to_owned(), time(&of["since"])]
}

fn pods(progress: &Value) -> String {
    format!("{} pods", text(progress))
}

fn time(value: &Value) -> String {
    let time: Timestamp = value.as_str().unwrap().parse().unwrap();
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the part between two texts; nothing without both.
fn between<'h>(html: &'h str, start: &str, end: &str) -> &'h str {
    let part = html.split_once(start).and_then(|(_, rest)| rest.split_once(end));
    part.map_or("", |(part, _)| part)
}

/// Returns the texts between tags, without symbols.
fn lines(html: &str) -> Vec<String> {
    let texts = html.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    let is_symbol = |text: &&str| text.chars().count() < 2 && !text.chars().all(char::is_alphanumeric);
    texts.map(str::trim).filter(|text| !text.is_empty() && !is_symbol(text)).map(decoded).collect()
}

/// Replaces the entities that the page uses.
fn decoded(text: &str) -> String {
    let entities =
        [("lt", "<"), ("gt", ">"), ("quot", "\""), ("#x27", "'"), ("#x3D", "="), ("#x60", "`"), ("amp", "&")];
    entities.iter().fold(text.to_owned(), |text, (name, letter)| text.replace(&format!("&{name};"), letter))
}
