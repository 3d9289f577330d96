//! Resource limits of a rendering: templates are user input.

use std::collections::HashMap;
use std::rc::Rc;

use crate::heap::{Charge, Heap};
use crate::regexp::Regexp;
use crate::text::{TEXT_OVERHEAD, Text};
use crate::value::{BoundMethod, Count, Map, Struct, Value, WeakMap};

/// The maximum nesting depth of values.
pub(crate) const MAX_VALUE_DEPTH: usize = 100;

/// The number of bytes that one step pays for.
pub(crate) const STEP_SIZE: usize = 64;

/// The cost of compiling a regular expression, in steps.
const REGEXP_STEPS: usize = 500;

/// The maximum number of cached regular expressions.
const MAX_REGEXPS: usize = 16;

/// The number of steps between two checks for an interrupt.
const STEPS_BETWEEN_POLLS: usize = 1_000;

/// The number of tracked maps at which dropped ones are removed from the list.
const MIN_TRACKED_MAPS: usize = 1_024;

/// The limits of one rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The nesting depth of template parts and of template calls.
    pub depth: usize,
    /// The number of steps: each command takes one, and more if it handles much data.
    pub steps: usize,
    /// The length of the output in bytes.
    pub output: usize,
    /// The size of a value.
    /// It is the bytes of a string, or the elements of a list or dict.
    pub value: usize,
    /// The number of bytes that the template's own values may hold at a time.
    ///
    /// The values of the data do not count.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 250, steps: 1_000_000, output: 1 << 20, value: 1 << 20, memory: 24 << 20 }
    }
}

/// The error text of a function that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    pub(crate) fn too_large(size: usize, most: usize) -> Self {
        Self(format!("a value of {size} bytes or elements is larger than the limit of {most}"))
    }

    pub(crate) fn too_deep() -> Self {
        Self(format!("values are nested deeper than the limit of {MAX_VALUE_DEPTH} levels"))
    }

    fn too_much_memory(most: usize) -> Self {
        Self(format!("the values of the template take more memory than the limit of {most} bytes"))
    }

    fn interrupted() -> Self {
        Self("the rendering was interrupted".to_owned())
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

/// The remaining budget of a rendering, and the maps to clear at its end.
pub(crate) struct Budget<'i> {
    limits: Limits,
    steps: usize,
    /// The number of remaining steps at which the next check for an interrupt is due.
    next_poll: usize,
    is_interrupted: &'i dyn Fn() -> bool,
    was_interrupted: bool,
    heap: Heap,
    /// Maps that the template made or changed and that can contain themselves.
    ///
    /// Such a cycle would never be freed, so all of these maps are cleared at the end.
    maps: Vec<WeakMap>,
    /// The number of tracked maps at which dropped ones are removed from the list.
    most_maps: usize,
    /// The cache of compiled regular expressions.
    regexps: HashMap<Text, Rc<Regexp>>,
    /// Results of methods that collect data from their whole struct.
    ///
    /// The struct is stored beside its result, so that its address is not reused.
    gathered: HashMap<(*const Value, &'static str), (Struct, Value)>,
}

impl<'i> Budget<'i> {
    pub(crate) fn new(limits: Limits, is_interrupted: &'i dyn Fn() -> bool) -> Self {
        Self {
            limits,
            steps: limits.steps,
            next_poll: limits.steps,
            is_interrupted,
            was_interrupted: false,
            heap: Heap::default(),
            maps: Vec::new(),
            most_maps: MIN_TRACKED_MAPS,
            regexps: HashMap::new(),
            gathered: HashMap::new(),
        }
    }

    /// Returns the heap that the values of the rendering are counted on.
    #[cfg(test)]
    pub(crate) fn heap(&self) -> Heap {
        self.heap.clone()
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the maximum size of a value.
    pub(crate) fn most(&self) -> usize {
        self.limits.value
    }

    /// Returns whether the rendering ended because it was interrupted.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.was_interrupted
    }

    /// Takes a step, and more steps for a large size.
    pub(crate) fn step(&mut self, size: usize) -> Result<(), Failure> {
        let steps = 1 + size / STEP_SIZE;
        self.steps = self.steps.checked_sub(steps).ok_or_else(|| Failure::too_long(self.limits.steps))?;
        if self.steps < self.next_poll {
            self.next_poll = self.steps.saturating_sub(STEPS_BETWEEN_POLLS);
            self.was_interrupted |= (self.is_interrupted)();
        }
        if self.was_interrupted { Err(Failure::interrupted()) } else { Ok(()) }
    }

    /// Exempts the data of the template: its values do not count.
    pub(crate) fn exempt(&self, data: &Value) {
        Count { heap: &self.heap, factor: 0, on_map: &mut |_| {} }.value(data);
    }

    /// Counts the content of a value that was not counted before.
    pub(crate) fn count(&mut self, value: &Value) -> Result<(), Failure> {
        let Self { heap, maps, .. } = self;
        let mut on_map = |map: &Map| {
            if map.can_hold_itself() {
                maps.extend(map.downgrade());
            }
        };
        Count { heap, factor: 1, on_map: &mut on_map }.value(value);
        if self.maps.len() > self.most_maps {
            self.maps.retain(WeakMap::is_alive);
            self.most_maps = MIN_TRACKED_MAPS.max(2 * self.maps.len());
        }
        self.check_room(0)
    }

    /// Fails if there is no room for this number of bytes beside the existing values.
    pub(crate) fn check_room(&self, bytes: usize) -> Result<(), Failure> {
        let most = self.limits.memory;
        if self.heap.used().saturating_add(bytes) > most {
            Err(Failure::too_much_memory(most))
        } else {
            Ok(())
        }
    }

    /// Fails if a list of this length exceeds the limit of size or memory.
    pub(crate) fn check_list(&self, count: usize) -> Result<(), Failure> {
        self.check_size(count)?;
        // A growing list allocates room for twice its elements.
        self.check_room(count.saturating_mul(2 * size_of::<Value>()))
    }

    /// Fails if there is no room for a new list of strings or lists.
    ///
    /// Only the elements themselves count, not their content.
    pub(crate) fn check_made(&self, count: usize) -> Result<(), Failure> {
        self.check_size(count)?;
        self.check_room(count.saturating_mul(2 * size_of::<Value>() + TEXT_OVERHEAD))
    }

    /// Counts bytes until the charge is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> Result<Charge, Failure> {
        self.check_room(bytes)?;
        Ok(self.heap.charge(bytes))
    }

    /// Returns the current entries of a map, and a charge for them.
    pub(crate) fn snapshot(&self, map: &Map) -> Result<(Vec<(Value, Value)>, Charge), Failure> {
        let charge = self.hold(map.len() * size_of::<(Value, Value)>())?;
        Ok((map.entries(), charge))
    }

    /// Sets the value of a key, visible to all that share the map.
    ///
    /// Returns false for the nil map.
    pub(crate) fn insert(&mut self, map: &Map, key: Value, value: Value) -> Result<bool, Failure> {
        if map.count_changes(&self.heap) && map.can_hold_itself() {
            self.maps.extend(map.downgrade());
        }
        let is_set = map.insert(&self.heap, key, value);
        self.check_room(0)?;
        Ok(is_set)
    }

    /// Fails if a value would be too large.
    pub(crate) fn check_size(&self, size: usize) -> Result<(), Failure> {
        if size > self.limits.value { Err(Failure::too_large(size, self.limits.value)) } else { Ok(()) }
    }

    /// Fails if a value is too large or too deeply nested.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Failure> {
        self.check_size(value.size())?;
        if value.depth() > MAX_VALUE_DEPTH { Err(Failure::too_deep()) } else { Ok(()) }
    }

    /// Returns a regular expression, compiled or from the cache; the inner error is Go's.
    pub(crate) fn regexp(&mut self, expression: &Text) -> Result<Result<Rc<Regexp>, String>, Failure> {
        if let Some(known) = self.regexps.get(expression) {
            return Ok(Ok(known.clone()));
        }
        self.step(REGEXP_STEPS * STEP_SIZE)?;
        let compiled = match std::str::from_utf8(expression.as_bytes()) {
            Ok(text) => Regexp::compile(text, self)?.map(Rc::new),
            Err(_) => Err(format!("error parsing regexp: invalid UTF-8: `{expression}`")),
        };
        if let Ok(compiled) = &compiled {
            if self.regexps.len() >= MAX_REGEXPS {
                self.regexps.clear();
            }
            self.regexps.insert(expression.clone(), compiled.clone());
        }
        Ok(compiled)
    }

    /// Calls a method.
    ///
    /// A list or a map is collected once: a template may call the method in each iteration of a loop.
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

    /// Returns whether two values are deeply equal.
    pub(crate) fn are_equal(&mut self, left: &Value, right: &Value) -> Result<bool, Failure> {
        let mut look = |value: &Value, depth| {
            if depth > MAX_VALUE_DEPTH {
                return Err(Failure::too_deep());
            }
            self.step(value.weight())
        };
        left.is_deeply_equal(right, &mut look, 0)
    }
}

impl Drop for Budget<'_> {
    fn drop(&mut self) {
        self.maps.iter().for_each(WeakMap::clear);
    }
}
