//! Responses with a page.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Uri};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Serialize;

use super::filters::FiltersView;
use super::templates::{self, Template, Templates};
use crate::web::http::{EntityTag, Problem, respond};
use crate::web::store::Stores;

/// The content type of a page.
const HTML: &str = "text/html; charset=utf-8";

/// The policy of a page: own script, style and connections, and forms that lead back.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'",
);

/// The state of the pages. Clones share it.
#[derive(Clone)]
pub(super) struct Pages {
    pub(super) stores: Stores,
    templates: Templates,
}

/// The content of the page of an error.
#[derive(Debug, Serialize)]
struct ErrorView {
    title: String,
    detail: String,
    /// The form of the list, if a filter has an invalid value.
    filters: Option<FiltersView>,
}

impl Pages {
    pub(super) fn new(stores: Stores) -> Self {
        Self { stores, templates: Templates::new() }
    }

    /// Responds with a page, or with 304 if the client has it.
    ///
    /// `versions` are texts on which the content depends. `view` is called only if the response has a content.
    pub(super) async fn respond(
        &self,
        request: &Parts,
        mut versions: Vec<String>,
        template: Template,
        view: impl FnOnce() -> serde_json::Value + Send + 'static,
    ) -> Response {
        versions.extend(templates::SOURCES.map(str::to_owned));
        let tag = EntityTag::of(versions);
        let has_content = request.method != Method::HEAD && !tag.is_known(&request.headers);
        let body = if has_content {
            match self.templates.render(template, Some(&tag), view).await {
                Ok(page) => Body::from(page),
                Err(problem) => return problem.into_response(),
            }
        } else {
            // The length of the page is not known, so it must not be that of an empty body.
            Body::from_stream(stream::empty::<Result<Bytes, Infallible>>())
        };
        with_policy(respond(&request.headers, &tag, HTML, || body))
    }

    /// Responds with the page of an error.
    pub(super) async fn respond_with(&self, problem: Problem, filters: Option<FiltersView>) -> Response {
        let (title, detail) = (problem.title().to_owned(), problem.detail().to_owned());
        let view = move || templates::value(&ErrorView { title, detail, filters });
        match self.templates.render(Template::Error, None, view).await {
            Ok(page) => {
                let content_type = HeaderValue::from_static(HTML);
                with_policy((problem.status(), [(CONTENT_TYPE, content_type)], page).into_response())
            }
            Err(problem) => problem.into_response(),
        }
    }
}

/// Responds to a request for a path that does not exist.
pub(super) async fn not_found(State(pages): State<Pages>, uri: Uri) -> Response {
    let problem = Problem::not_found(format!("there is nothing at {}", uri.path()));
    if uri.path().starts_with("/api/") {
        return problem.into_response();
    }
    pages.respond_with(problem, None).await
}

fn with_policy(mut response: Response) -> Response {
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    response
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use axum::http::header::{CONTENT_LENGTH, ETAG, IF_NONE_MATCH};

    use super::*;

    async fn response(method: Method, tag: Option<&HeaderValue>, is_rendered: bool) -> Response {
        let request = Request::builder().method(method).uri("/");
        let request = tag.iter().fold(request, |request, tag| request.header(IF_NONE_MATCH, *tag));
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let view = move || {
            assert!(is_rendered, "the page is rendered");
            templates::value(&ErrorView { title: "a".to_owned(), detail: "b".to_owned(), filters: None })
        };
        Pages::new(Stores::new("")).respond(&parts, vec!["1".to_owned()], Template::Error, view).await
    }

    #[tokio::test]
    async fn a_page_is_rendered_only_for_a_response_with_a_content() {
        let page = response(Method::GET, None, true).await;
        let tag = &page.headers()[ETAG];
        assert_eq!(response(Method::GET, Some(tag), false).await.status(), 304);
        assert_eq!(response(Method::HEAD, Some(tag), false).await.status(), 304);
        let head = response(Method::HEAD, None, false).await;
        assert_eq!((head.status().as_u16(), &head.headers()[ETAG]), (200, tag));
        assert_eq!(head.headers().get(CONTENT_LENGTH), None);
        assert_eq!(head.headers()[CONTENT_TYPE], HTML);
    }
}
