//! Writes objects by merge patches of the difference.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use kube::core::object::HasStatus;
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use super::api_guard::ApiGuard;
use super::error::ClusterError;
use super::merge_patch;
use super::resource_scope::ResourceScope;
use super::watch::Watched;
use crate::backoff::Backoff;

/// The maximum number of attempts to write an object.
///
/// An attempt fails if others change the object meanwhile, or the API server is unavailable.
const TRIES: u32 = 5;

/// The delay between these attempts.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(60) };

/// Writes objects as one of Flux's controllers.
///
/// So either controller can take over from the other.
#[derive(Clone)]
pub struct ObjectWriter {
    client: Client,
    guard: ApiGuard,
    /// The field manager of Flux's controller.
    manager: &'static str,
}

/// A change of an object.
struct Write<'a, K> {
    /// True if it changes the status.
    is_status: bool,
    /// Makes the merge patch from the current object; `None` if nothing changes.
    patch: &'a (dyn Fn(&K) -> Option<Value> + Sync),
}

impl ObjectWriter {
    /// Makes a writer with a field manager.
    pub fn new(client: Client, guard: ApiGuard, manager: &'static str) -> Self {
        Self { client, guard, manager }
    }

    /// Adds a finalizer to an object and returns the updated object, unless it was deleted.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub async fn add_finalizer<K: Watched>(
        &self,
        object: &K,
        finalizer: &str,
    ) -> Result<Option<K>, ClusterError> {
        let patch = |current: &K| {
            let mut finalizers = current.finalizers().to_vec();
            let is_missing = !finalizers.iter().any(|own| own == finalizer);
            finalizers.push(finalizer.to_owned());
            // The API server rejects new finalizers on an object that is being deleted.
            (is_missing && current.meta().deletion_timestamp.is_none())
                .then(|| json!({"metadata": {"finalizers": finalizers}}))
        };
        Box::pin(self.write(object, &Write { is_status: false, patch: &patch })).await
    }

    /// Removes a finalizer from an object, which may be deleted then.
    ///
    /// # Errors
    ///
    /// If it cannot be written; an object that was deleted is no error.
    pub async fn remove_finalizer<K: Watched>(
        &self,
        object: &K,
        finalizer: &str,
    ) -> Result<(), ClusterError> {
        let patch = |current: &K| {
            let mut finalizers = current.finalizers().to_vec();
            finalizers.retain(|own| own != finalizer);
            (finalizers.len() < current.finalizers().len())
                .then(|| json!({"metadata": {"finalizers": finalizers}}))
        };
        Box::pin(self.write(object, &Write { is_status: false, patch: &patch })).await?;
        Ok(())
    }

    /// Removes a finalizer from an object of which only the metadata can be parsed.
    ///
    /// # Errors
    ///
    /// If it cannot be written or was changed by another client; an object that was deleted is no error.
    pub async fn remove_finalizer_by_metadata<K: Watched>(
        &self,
        metadata: &ObjectMeta,
        finalizer: &str,
    ) -> Result<(), ClusterError> {
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|own| own != finalizer);
        let patch =
            json!({"metadata": {"finalizers": finalizers, "resourceVersion": metadata.resource_version}});
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<K> = K::Scope::api(self.client.clone(), Some(namespace));
        let name = metadata.name.as_deref().unwrap_or_default();
        let parameters = self.parameters();
        let patch = Patch::Merge(&patch);
        let released = api.patch_metadata(name, &parameters, &patch);
        match self.guard.send(namespace, released).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Patches the status (JSON merge patch) of an object.
    ///
    /// Returns the updated object, unless it was deleted.
    ///
    /// `status` makes the new status from the current object. It is called again if another client changed the object
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub async fn patch_status<K: Watched + HasStatus>(
        &self,
        object: &K,
        status: &(dyn Fn(&K) -> K::Status + Sync),
    ) -> Result<Option<K>, ClusterError>
    where
        K::Status: Serialize,
    {
        let patch = |current: &K| {
            let as_json = |status| serde_json::to_value(status).expect("a status is plain JSON");
            let old = current.status().map_or_else(|| json!({}), as_json);
            let new = as_json(&status(current));
            merge_patch::difference(&old, &new).map(|status| json!({"status": status, "metadata": {}}))
        };
        Box::pin(self.write(object, &Write { is_status: true, patch: &patch })).await
    }

    /// Replaces the labels of an object, and returns the updated object, unless it was deleted.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub async fn set_labels<K: Watched>(
        &self,
        object: &K,
        labels: &BTreeMap<String, String>,
    ) -> Result<Option<K>, ClusterError> {
        let patch = |current: &K| {
            merge_patch::difference(&json!(current.labels()), &json!(labels))
                .map(|labels| json!({"metadata": {"labels": labels}}))
        };
        Box::pin(self.write(object, &Write { is_status: false, patch: &patch })).await
    }

    /// Creates an object; one of its name that exists already is left as it is.
    ///
    /// # Errors
    ///
    /// If it cannot be created.
    pub async fn create<K: Watched + Serialize>(&self, object: &K) -> Result<(), ClusterError> {
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<K> = K::Scope::api(self.client.clone(), Some(&namespace));
        let parameters = PostParams { field_manager: Some(self.manager.to_owned()), ..Default::default() };
        match self.guard.send(&namespace, api.create(&parameters, object)).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_already_exists() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object, but no other object of its name.
    ///
    /// # Errors
    ///
    /// If it cannot be deleted; an object that was deleted is no error.
    pub async fn delete<K: Watched>(&self, object: &K) -> Result<(), ClusterError> {
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<K> = K::Scope::api(self.client.clone(), Some(&namespace));
        let uid = object.uid();
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let parameters = DeleteParams { preconditions, ..DeleteParams::background() };
        match self.guard.send(&namespace, api.delete(&object.name_any(), &parameters)).await {
            Ok(_) => Ok(()),
            // A conflict means that it was replaced by another object.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn parameters(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.manager.to_owned()), ..Default::default() }
    }

    /// Writes a change of an object, again after each conflict.
    ///
    /// Callers put the large future on the heap (`Box`), so that those that do not write yet stay small.
    async fn write<K: Watched>(&self, object: &K, write: &Write<'_, K>) -> Result<Option<K>, ClusterError> {
        let name = object.name_any();
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<K> = K::Scope::api(self.client.clone(), Some(&namespace));
        let parameters = self.parameters();
        let mut current = object.clone();
        for attempt in 1..=TRIES {
            let Some(mut patch) = (write.patch)(&current) else { return Ok(Some(current)) };
            patch["metadata"]["resourceVersion"] = json!(current.resource_version());
            let patch = Patch::Merge(&patch);
            let written = if write.is_status {
                self.guard.send(&namespace, api.patch_status(&name, &parameters, &patch)).await
            } else {
                self.guard.send(&namespace, api.patch(&name, &parameters, &patch)).await
            };
            match written {
                Ok(written) => return Ok(Some(written)),
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) if attempt < TRIES && (error.is_conflict() || error.is_transient()) => {
                    tokio::time::sleep(BACKOFF.after(attempt)).await;
                }
                Err(error) if error.is_conflict() => break,
                Err(error) => return Err(error),
            }
            match self.guard.send(&namespace, api.get_opt(&name)).await {
                // This is another object of the same name.
                Ok(Some(found)) if found.uid() != object.uid() => return Ok(None),
                Ok(Some(found)) => current = found,
                Ok(None) => return Ok(None),
                // The next attempt shows whether the error is permanent.
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error),
            }
        }
        Err(ClusterError::Conflicts { tries: TRIES })
    }
}
