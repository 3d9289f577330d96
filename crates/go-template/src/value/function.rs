//! Functions as values, for the built-in `call`.

use std::fmt;
use std::rc::Rc;

use super::{Type, Value};

type Body = dyn Fn(&[Value]) -> Result<Value, String>;

/// A function that the data holds.
#[derive(Clone)]
pub struct Callable {
    signature: &'static str,
    parameters: &'static [Type],
    body: Rc<Body>,
}

impl Callable {
    /// Makes a function from the signature that Go would print, and its parameter types.
    #[must_use]
    pub fn new(
        signature: &'static str,
        parameters: &'static [Type],
        body: impl Fn(&[Value]) -> Result<Value, String> + 'static,
    ) -> Self {
        Self { signature, parameters, body: Rc::new(body) }
    }

    /// Returns the signature, for example `func(int) string`.
    #[must_use]
    pub fn signature(&self) -> &'static str {
        self.signature
    }

    pub(crate) fn parameters(&self) -> &'static [Type] {
        self.parameters
    }

    pub(crate) fn call(&self, arguments: &[Value]) -> Result<Value, String> {
        (self.body)(arguments)
    }
}

impl fmt::Debug for Callable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.signature)
    }
}
