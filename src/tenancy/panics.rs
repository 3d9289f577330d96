//! Panics of tasks, as errors.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// A panic of a task, with its message.
#[derive(Debug, thiserror::Error)]
#[error("a defect of Tagboat, please report it: panic: {message}")]
pub struct Panicked {
    message: String,
}

/// Runs a future, and returns its panic as an error.
///
/// A caller goes on with what the future shares with others: each of its locks must leave a valid state in a panic.
///
/// # Errors
///
/// If the future panics.
pub async fn catch_panic<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let caught = AssertUnwindSafe(future).catch_unwind().await;
    caught.map_err(|panic| Panicked { message: text(panic.as_ref()).to_owned() })
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    panic.downcast_ref::<&str>().copied().or_else(owned).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_with_its_message() {
        assert_eq!(catch_panic(async { 7 }).await.ok(), Some(7));
        let number = 7;
        let text = async |future: futures::future::BoxFuture<'_, ()>| {
            catch_panic(future).await.unwrap_err().to_string()
        };
        let expected = "a defect of Tagboat, please report it: panic: ";
        assert_eq!(text(async { panic!("on purpose") }.boxed()).await, format!("{expected}on purpose"));
        assert_eq!(
            text(async move { panic!("number {number}") }.boxed()).await,
            format!("{expected}number 7")
        );
    }
}
