//! Requests are parsed to the verbs and resources of roles.

use axum::http::Request;

use crate::support::api_server::Call;

/// No namespace or name.
const NONE: &str = "-";

/// Method, target → verb, resource, namespace, name.
const TABLE: &[[&str; 6]] = &[
    ["GET", "/api/v1/namespaces/ns/secrets/key", "get", "secrets", "ns", "key"],
    ["GET", "/api/v1/namespaces/ns/secrets?limit=500", "list", "secrets", "ns", NONE],
    ["GET", "/apis/group/v1/things?watch=true&resourceVersion=1", "watch", "things", NONE, NONE],
    ["GET", "/apis/group/v1/things?resourceVersion=1&watch=1", "watch", "things", NONE, NONE],
    ["GET", "/apis/group/v1/things?labelSelector=watch%3Dtrue", "list", "things", NONE, NONE],
    ["POST", "/apis/group/v1/namespaces/ns/things", "create", "things", "ns", NONE],
    [
        "POST",
        "/api/v1/namespaces/ns/serviceaccounts/bot/token",
        "create",
        "serviceaccounts/token",
        "ns",
        "bot",
    ],
    ["PUT", "/apis/group/v1/namespaces/ns/things/one", "update", "things", "ns", "one"],
    ["PATCH", "/apis/group/v1/namespaces/ns/things/one/status", "patch", "things/status", "ns", "one"],
    ["DELETE", "/apis/group/v1/namespaces/ns/things/one", "delete", "things", "ns", "one"],
    ["DELETE", "/apis/group/v1/namespaces/ns/things", "deletecollection", "things", "ns", NONE],
    ["GET", "/api/v1/namespaces", "list", "namespaces", NONE, NONE],
    ["GET", "/api/v1/namespaces/ns", "get", "namespaces", NONE, "ns"],
    ["PUT", "/api/v1/namespaces/ns/finalize", "update", "namespaces/finalize", NONE, "ns"],
    ["GET", "/readyz", "get", "/readyz", NONE, NONE],
    ["GET", "/apis/group/v1", "get", "/apis/group/v1", NONE, NONE],
];

#[test]
fn verbs_and_resources_are_recorded_as_in_roles() {
    for &[method, target, verb, resource, namespace, name] in TABLE {
        let call = Call::new(&Request::builder().method(method).uri(target).body(()).unwrap());
        let part = |part: &Option<String>| part.clone().unwrap_or(NONE.to_owned());
        let seen = [call.verb.to_owned(), call.resource.clone(), part(&call.namespace), part(&call.name)];
        assert_eq!(seen, [verb, resource, namespace, name], "{method} {target}");
        assert_eq!(call.target, target);
        assert_eq!(call.writes(), method != "GET", "{method} {target}");
    }
}
