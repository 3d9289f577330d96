//! The script and the style of the page.

use axum::Router;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::routing::get;

use crate::web::http::{EntityTag, respond};

const STYLE: &str = include_str!("../../../templates/page/style.css");
const SCRIPT: &str = include_str!("../../../templates/page/script.js");

/// Returns the routes of the assets.
pub(super) fn routes() -> Router {
    let asset = |content_type: &'static str, text: &'static str| {
        get(move |request: HeaderMap| async move {
            respond(&request, &EntityTag::of([text]), content_type, || Body::from(text))
        })
    };
    Router::new()
        .route("/assets/style.css", asset("text/css; charset=utf-8", STYLE))
        .route("/assets/script.js", asset("text/javascript; charset=utf-8", SCRIPT))
}
