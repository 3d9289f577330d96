//! Recorded exchanges with a cloud.
//! A server on loopback replays the answers, and compares each request with the record.
//!
//! `testdata/clouds/NAME.yaml` is an ordered list of exchanges. A value in `headers` or `form` that ends with
//! `*` is a prefix.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde::Deserialize;

use super::git_host::request::Request;
use super::http_front::{Front, Reply};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    request: Expected,
    answer: Answer,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    method: String,
    path: String,
    #[serde(default)]
    query: BTreeMap<String, String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    form: BTreeMap<String, String>,
    #[serde(default)]
    body: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: String,
}

/// A server that replays a record.
pub(crate) struct Recording {
    pub(crate) front: Front,
    number: usize,
    misfits: Arc<Mutex<Vec<String>>>,
}

impl Recording {
    /// Replays records one after the other.
    pub(crate) fn replay(names: &[&str]) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/clouds");
        let mut exchanges: Vec<Exchange> = Vec::new();
        for name in names {
            let text = fs::read_to_string(directory.join(format!("{name}.yaml"))).unwrap();
            exchanges.extend(serde_saphyr::from_str::<Vec<Exchange>>(&text).unwrap());
        }
        let (number, misfits) = (exchanges.len(), Arc::<Mutex<Vec<String>>>::default());
        let noted = Arc::clone(&misfits);
        let rest = Mutex::new(exchanges.into_iter());
        let front = Front::alone(move |request| {
            let Some(exchange) = rest.lock().unwrap().next() else {
                noted.lock().unwrap().push(format!("one request too many: {request:?}"));
                return Reply::status(500);
            };
            if let Some(misfit) = exchange.request.misfit(request) {
                noted.lock().unwrap().push(format!("{misfit}: {request:?}"));
                return Reply::status(500);
            }
            let Answer { status, headers, body } = exchange.answer;
            headers.iter().fold(Reply::body(status, body), |reply, (name, value)| reply.with(name, value))
        });
        Self { front, number, misfits }
    }

    /// Asserts that each request so far was as in the record, and returns their number.
    pub(crate) fn replayed(&self) -> usize {
        let misfits = self.misfits.lock().unwrap();
        assert!(misfits.is_empty(), "{misfits:#?}");
        self.front.requests().len()
    }

    /// Asserts that the whole record was replayed, and returns the requests.
    pub(crate) fn finish(self) -> Vec<Request> {
        assert_eq!(self.replayed(), self.number);
        self.front.requests()
    }
}

impl Expected {
    /// The difference from the record, if any.
    fn misfit(&self, request: &Request) -> Option<String> {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let headers = self.headers.iter().find(|(name, value)| {
            let found = request.header(&name.to_ascii_lowercase()).unwrap_or_default();
            !fits(found, value)
        });
        if (&request.method, &request.path) != (&self.method, &self.path) {
            Some(format!("not {} {}", self.method, self.path))
        } else if let Some(header) = headers {
            Some(format!("not the header {header:?}"))
        } else if !same(&self.query, &request.query) {
            Some(format!("not the question {:?}", self.query))
        } else if self.body.as_ref().is_some_and(|expected| *expected != body) {
            Some(format!("the body is {body:?}"))
        } else if self.body.is_none() && !same(&self.form, &body) {
            Some(format!("the form is {body:?}"))
        } else {
            None
        }
    }
}

fn fits(found: &str, expected: &str) -> bool {
    match expected.strip_suffix('*') {
        Some(begin) => found.starts_with(begin) && found.len() > begin.len(),
        None => found == expected,
    }
}

fn same(expected: &BTreeMap<String, String>, form: &str) -> bool {
    let found: BTreeMap<String, String> = url::form_urlencoded::parse(form.as_bytes()).into_owned().collect();
    found.len() == expected.len()
        && expected.iter().all(|(name, value)| found.get(name).is_some_and(|found| fits(found, value)))
}
