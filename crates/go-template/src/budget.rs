//! What a rendering may use: a template is user input.

use std::collections::HashMap;
use std::rc::Rc;

use crate::heap::{Charge, Heap};
use crate::regexp::Regexp;
use crate::text::{TEXT_OVERHEAD, Text};
use crate::value::{BoundMethod, Count, Map, Struct, Value, WeakMap};

/// How deep values may hold one another.
pub(crate) const DEEPEST_VALUE: usize = 100;

/// How many bytes one step pays for.
pub(crate) const SIZE_OF_STEP: usize = 64;

/// How many steps it takes to compile a regular expression.
const STEPS_OF_REGEXP: usize = 500;

/// How many compiled regular expressions are kept.
const MOST_REGEXPS: usize = 16;

/// After how many steps the rendering asks whether it is interrupted.
const STEPS_BETWEEN_POLLS: usize = 1_000;

/// How many maps are remembered before those that are gone are forgotten.
const LEAST_MAPS: usize = 1_024;

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
    /// How many bytes the values that the template made may hold at a time; those of the data do not count.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 250, steps: 1_000_000, output: 1 << 20, value: 1 << 20, memory: 24 << 20 }
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

/// What is left of the bounds, and what has to be freed at the end.
pub(crate) struct Budget<'i> {
    limits: Limits,
    steps: usize,
    /// How many steps are left when it is asked next whether the rendering is interrupted.
    next_poll: usize,
    is_interrupted: &'i dyn Fn() -> bool,
    was_interrupted: bool,
    heap: Heap,
    /// The maps that the template made or changed and that can hold themselves. Such a circle would never be freed, so
    /// all are emptied at the end.
    maps: Vec<WeakMap>,
    /// How many maps there may be before those that are gone are forgotten.
    most_maps: usize,
    /// Regular expressions that were compiled.
    regexps: HashMap<Text, Rc<Regexp>>,
    /// What methods gave that gather from their whole struct, with the struct, which so keeps its identity.
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
            most_maps: LEAST_MAPS,
            regexps: HashMap::new(),
            gathered: HashMap::new(),
        }
    }

    /// What the values of the rendering are counted on.
    #[cfg(test)]
    pub(crate) fn heap(&self) -> Heap {
        self.heap.clone()
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The largest size of a value.
    pub(crate) fn most(&self) -> usize {
        self.limits.value
    }

    /// Whether the rendering ended because it was interrupted.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.was_interrupted
    }

    /// Takes a step, and more for a size.
    pub(crate) fn step(&mut self, size: usize) -> Result<(), Failure> {
        let steps = 1 + size / SIZE_OF_STEP;
        self.steps = self.steps.checked_sub(steps).ok_or_else(|| Failure::too_long(self.limits.steps))?;
        if self.steps < self.next_poll {
            self.next_poll = self.steps.saturating_sub(STEPS_BETWEEN_POLLS);
            self.was_interrupted |= (self.is_interrupted)();
        }
        if self.was_interrupted { Err(Failure::interrupted()) } else { Ok(()) }
    }

    /// Takes the data of the template for granted: they do not count.
    pub(crate) fn exempt(&self, data: &Value) {
        Count { heap: &self.heap, factor: 0, on_map: &mut |_| {} }.value(data);
    }

    /// Counts what a value holds that was not counted before.
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
            self.most_maps = LEAST_MAPS.max(2 * self.maps.len());
        }
        self.check_room(0)
    }

    /// Fails when there is no room for so many bytes beside what values hold.
    pub(crate) fn check_room(&self, bytes: usize) -> Result<(), Failure> {
        let most = self.limits.memory;
        if self.heap.used().saturating_add(bytes) > most {
            Err(Failure::too_much_memory(most))
        } else {
            Ok(())
        }
    }

    /// Fails when a list of so many elements is too large, or there is no room for it.
    pub(crate) fn check_list(&self, count: usize) -> Result<(), Failure> {
        self.check_size(count)?;
        // A list that grows has room for twice as many.
        self.check_room(count.saturating_mul(2 * size_of::<Value>()))
    }

    /// The same for a list of texts or lists that are made for it, beside what is in them.
    pub(crate) fn check_made(&self, count: usize) -> Result<(), Failure> {
        self.check_size(count)?;
        self.check_room(count.saturating_mul(2 * size_of::<Value>() + TEXT_OVERHEAD))
    }

    /// Counts bytes for as long as the charge is there.
    pub(crate) fn hold(&self, bytes: usize) -> Result<Charge, Failure> {
        self.check_room(bytes)?;
        Ok(self.heap.charge(bytes))
    }

    /// The entries of a map as they are now, and their charge.
    pub(crate) fn snapshot(&self, map: &Map) -> Result<(Vec<(Value, Value)>, Charge), Failure> {
        let charge = self.hold(map.len() * size_of::<(Value, Value)>())?;
        Ok((map.entries(), charge))
    }

    /// Sets the value at a key of a map, for all who share it; false when it is the nil map.
    pub(crate) fn insert(&mut self, map: &Map, key: Value, value: Value) -> Result<bool, Failure> {
        if map.count_changes() && map.can_hold_itself() {
            self.maps.extend(map.downgrade());
        }
        let is_set = map.insert(key, value);
        self.check_room(0)?;
        Ok(is_set)
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

    /// A regular expression, compiled once for as long as it is kept; the inner error is Go's.
    pub(crate) fn regexp(&mut self, expression: &Text) -> Result<Result<Rc<Regexp>, String>, Failure> {
        if let Some(known) = self.regexps.get(expression) {
            return Ok(Ok(known.clone()));
        }
        self.step(STEPS_OF_REGEXP * SIZE_OF_STEP)?;
        let compiled = match std::str::from_utf8(expression.as_bytes()) {
            Ok(text) => Regexp::compile(text, self)?.map(Rc::new),
            Err(_) => Err(format!("error parsing regexp: invalid UTF-8: `{expression}`")),
        };
        if let Ok(compiled) = &compiled {
            if self.regexps.len() >= MOST_REGEXPS {
                self.regexps.clear();
            }
            self.regexps.insert(expression.clone(), compiled.clone());
        }
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

impl Drop for Budget<'_> {
    fn drop(&mut self) {
        self.maps.iter().for_each(WeakMap::clear);
    }
}
