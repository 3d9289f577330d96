//! Runs the controllers of a process, each once the cluster has what it needs.

use std::future::{Future, pending};

use futures::future::{BoxFuture, FutureExt, join_all};
use kube::Client;
use tokio::sync::watch;

use super::engine::{ControllerError, Requirement, wait_until_ready};
use crate::objects::cluster::Scope;

/// A future that completes when a controller must shut down.
type End = BoxFuture<'static, ()>;

/// A controller of a process.
pub struct Controller {
    /// The name in the log.
    name: &'static str,
    scope: Scope,
    requirements: Vec<Requirement>,
    run: Box<dyn FnOnce(End) -> BoxFuture<'static, Result<(), ControllerError>> + Send>,
}

impl Controller {
    /// Makes a controller that `run` runs once the `requirements` are met in the `scope`.
    pub(super) fn new<F>(
        name: &'static str,
        scope: Scope,
        requirements: Vec<Requirement>,
        run: impl FnOnce(End) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), ControllerError>> + Send + 'static,
    {
        Self { name, scope, requirements, run: Box::new(|end| run(end).boxed()) }
    }
}

/// Runs controllers until `end` has come or one of them has ended.
///
/// If one ends, so do the others: a supervisor restarts the process as a whole.
///
/// # Errors
///
/// The error of the first controller of the list that failed.
pub async fn run(
    client: &Client,
    controllers: Vec<Controller>,
    end: impl Future<Output = ()>,
) -> Result<(), ControllerError> {
    let stop = watch::Sender::new(false);
    let runs = join_all(controllers.into_iter().map(async |controller| {
        let Controller { name, scope, requirements, run } = controller;
        let result = tokio::select! {
            () = stopped(stop.subscribe()) => Ok(()),
            ready = wait_until_ready(name, &requirements, client, &scope) => match ready {
                Ok(()) => run(stopped(stop.subscribe()).boxed()).await,
                Err(error) => Err(error),
            },
        };
        stop.send_replace(true);
        result
    }));
    let result = tokio::select! {
        result = runs => result,
        never = async {
            end.await;
            stop.send_replace(true);
            pending().await
        } => never,
    };
    result.into_iter().collect()
}

/// Waits until the controllers of the process must stop.
async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the process ends.
    let _ = stop.wait_for(|is_stopped| *is_stopped).await;
}
