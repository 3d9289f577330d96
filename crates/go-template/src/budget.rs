//! What a rendering may use: a template is user input.

use std::collections::HashMap;
use std::rc::Rc;

use crate::regexp::Regexp;
use crate::text::Text;
use crate::value::{BoundMethod, Map, Struct, Value};

/// How deep values may hold one another.
pub(crate) const DEEPEST_VALUE: usize = 100;

/// How many bytes one step pays for.
pub(crate) const SIZE_OF_STEP: usize = 64;

/// How many steps it takes to compile a regular expression.
const STEPS_OF_REGEXP: usize = 500;

/// Bounds on one rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How deep parts of templates, and templates that call templates, may go.
    pub depth: usize,
    /// How many steps there may be: each command is one, and more when it handles much.
    pub steps: usize,
    /// How many bytes the text may have.
    pub output: usize,
    /// How many bytes a string, or elements a list or dict, may have.
    pub value: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 250, steps: 1_000_000, output: 1 << 20, value: 1 << 20 }
    }
}

/// Why a function gives no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    pub(crate) fn too_large(size: usize, most: usize) -> Self {
        Self(format!("a value of {size} bytes or elements is larger than the limit of {most}"))
    }

    pub(crate) fn too_deep() -> Self {
        Self(format!("values hold one another deeper than the limit of {DEEPEST_VALUE} levels"))
    }

    fn too_long(most: usize) -> Self {
        Self(format!("the template takes more than the limit of {most} steps"))
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self(message.to_owned())
    }
}

/// What is left of the bounds, and what has to be given back at the end.
pub(crate) struct Budget {
    limits: Limits,
    steps: usize,
    /// Every dict that was made. Templates can put dicts into one another in circles, which would never be freed,
    /// and in long chains, which would be freed too deeply; so all are emptied at the end.
    dicts: Vec<Map>,
    /// Every regular expression that was compiled.
    regexps: HashMap<Text, Result<Rc<Regexp>, String>>,
    /// What methods gave that gather from their whole struct, with the struct, which so keeps its identity.
    gathered: HashMap<(*const Value, &'static str), (Struct, Value)>,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            steps: limits.steps,
            dicts: Vec::new(),
            regexps: HashMap::new(),
            gathered: HashMap::new(),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The largest size of a value.
    pub(crate) fn most(&self) -> usize {
        self.limits.value
    }

    /// Takes a step, and more for a size.
    pub(crate) fn step(&mut self, size: usize) -> Result<(), Failure> {
        let steps = 1 + size / SIZE_OF_STEP;
        self.steps = self.steps.checked_sub(steps).ok_or_else(|| Failure::too_long(self.limits.steps))?;
        Ok(())
    }

    /// Fails when a value is going to be too large.
    pub(crate) fn check_size(&self, size: usize) -> Result<(), Failure> {
        if size > self.limits.value { Err(Failure::too_large(size, self.limits.value)) } else { Ok(()) }
    }

    /// Fails when a value is too large or too deep.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Failure> {
        self.check_size(value.size())?;
        if value.depth() > DEEPEST_VALUE { Err(Failure::too_deep()) } else { Ok(()) }
    }

    /// A new dict.
    pub(crate) fn dict(&mut self, entries: impl IntoIterator<Item = (Text, Value)>) -> Map {
        let dict = Map::dict(entries);
        self.keep(&dict);
        dict
    }

    /// Takes care of a map that a function made.
    pub(crate) fn keep(&mut self, map: &Map) {
        self.dicts.push(map.clone());
    }

    /// A regular expression, compiled once; the inner error is Go's.
    pub(crate) fn regexp(&mut self, expression: &Text) -> Result<Result<Rc<Regexp>, String>, Failure> {
        if let Some(known) = self.regexps.get(expression) {
            return Ok(known.clone());
        }
        self.step(STEPS_OF_REGEXP * SIZE_OF_STEP)?;
        let compiled = match std::str::from_utf8(expression.as_bytes()) {
            Ok(text) => Regexp::compile(text, self)?.map(Rc::new),
            Err(_) => Err(format!("error parsing regexp: invalid UTF-8: `{expression}`")),
        };
        self.regexps.insert(expression.clone(), compiled.clone());
        Ok(compiled)
    }

    /// What a method gives. A list or a map is gathered once: a template may ask for it in each turn of a loop.
    pub(crate) fn call(
        &mut self,
        method: BoundMethod,
        receiver: &Value,
        arguments: &[Value],
    ) -> Result<Value, Failure> {
        let Value::Struct(object) = receiver else { return method.call(receiver, arguments) };
        let place = (object.identity(), method.name());
        if let Some((_, known)) = self.gathered.get(&place) {
            return Ok(known.clone());
        }
        let result = method.call(receiver, arguments)?;
        if arguments.is_empty() && matches!(result, Value::Slice(_) | Value::Map(_)) {
            self.gathered.insert(place, (object.clone(), result.clone()));
        }
        Ok(result)
    }

    /// Whether two values are deeply equal.
    pub(crate) fn are_equal(&mut self, left: &Value, right: &Value) -> Result<bool, Failure> {
        let mut look = |value: &Value, depth| {
            if depth > DEEPEST_VALUE {
                return Err(Failure::too_deep());
            }
            self.step(value.weight())
        };
        left.is_deeply_equal(right, &mut look, 0)
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        for dict in &self.dicts {
            dict.clear();
        }
    }
}
