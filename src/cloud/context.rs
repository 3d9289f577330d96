//! The context of one login at a cloud.

use jiff::Timestamp;

use super::account::CloudIdentity;
use super::error::LoginError;
use super::network::{Network, RequestLabel};
use super::options::CloudOptions;
use crate::net::ProxyChoice;
use crate::net::http::HttpError;
use crate::net::http::Request;
use crate::net::http::Requester;
use crate::net::http::Response;
use crate::net::http::Route;
use crate::secrets::Fingerprint;

/// The context of one login: options, network, identity and time.
#[derive(Clone, Copy)]
pub(super) struct LoginContext<'c> {
    /// The options of logins at clouds.
    pub(super) options: &'c CloudOptions,
    /// Sends requests to the cloud.
    pub(super) network: &'c Network,
    /// The identity that logs in.
    pub(super) identity: &'c CloudIdentity,
    /// The proxy of the requester.
    pub(super) proxy: &'c ProxyChoice,
    /// The namespace that is charged for the work.
    /// It is empty for a login that all namespaces share.
    pub(super) namespace: &'c str,
    /// The namespace of the object that logs in.
    pub(super) tenant: &'c str,
    /// The namespace that owns cached results; empty if others may use them too.
    pub(super) scope: &'c str,
    /// The time of the login.
    pub(super) now: Timestamp,
}

impl LoginContext<'_> {
    /// Returns the same context for results that only the tenant uses.
    pub(super) fn of_tenant(self) -> Self {
        Self { namespace: self.tenant, scope: self.tenant, ..self }
    }

    /// Returns a cache key, which differs between identities and between routes.
    pub(super) fn key<'p>(&self, parts: impl IntoIterator<Item = &'p str>) -> Fingerprint {
        let route = Route { proxy: self.proxy.clone(), ..Route::default() }.fingerprint();
        let parts: Vec<&[u8]> = parts.into_iter().map(str::as_bytes).collect();
        let identity = self.identity.fingerprint();
        Fingerprint::of([
            self.scope.as_bytes(),
            identity.as_bytes(),
            route.as_bytes(),
            Fingerprint::of(parts).as_bytes(),
        ])
    }

    /// Sends a request to a service of the cloud.
    /// Any response but success is an error.
    pub(super) async fn service(
        &self,
        label: RequestLabel,
        request: Request,
    ) -> Result<Response, LoginError> {
        self.network.service(label, self.proxy, self.requester(), request).await
    }

    /// Sends a request to a metadata server.
    pub(super) async fn metadata(&self, request: Request) -> Result<Response, HttpError> {
        self.network.metadata(self.requester(), request).await
    }

    fn requester(&self) -> Requester {
        let login = Fingerprint::of([self.namespace.as_bytes(), self.identity.fingerprint().as_bytes()]);
        Requester { namespace: self.namespace.to_owned(), login }
    }
}
