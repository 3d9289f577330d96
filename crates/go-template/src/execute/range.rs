//! Executes `range`.

use super::{Flow, Operand, State};
use crate::syntax::Branch;
use crate::value::Value;

impl<'t> State<'t, '_, '_> {
    pub(super) fn range(&mut self, dot: &Operand, branch: &'t Branch) -> Result<Flow, String> {
        let value = self.pipe(dot, &branch.pipe)?.value.indirect();
        let known = self.variables.len();
        let mut has_run = false;
        let flow = match &value {
            Value::Int(number, kind) => {
                self.refuse_two(branch, &value)?;
                let kind = *kind;
                self.count(branch, *number, &mut has_run, |i| Value::Int(i, kind))?
            }
            Value::Uint(number, kind) => {
                self.refuse_two(branch, &value)?;
                let kind = *kind;
                let end = i64::try_from(*number).unwrap_or(i64::MAX);
                self.count(branch, end, &mut has_run, |i| Value::Uint(i.unsigned_abs(), kind))?
            }
            Value::Slice(slice) => {
                let mut flow = Flow::Next;
                for i in 0..slice.len() {
                    has_run = true;
                    let index = i64::try_from(i).unwrap_or(i64::MAX);
                    let item = Operand::placed(slice.get(i).unwrap_or(Value::Nil), *slice.of());
                    flow = self.turn(branch, Operand::of(Value::int(index)), &item, known)?;
                    if flow == Flow::Break {
                        break;
                    }
                }
                flow
            }
            Value::Map(map) => {
                self.budget.step(value.weight()).or_else(|failure| self.fail(failure))?;
                let (entries, _charge) = self.budget.snapshot(map).or_else(|failure| self.fail(failure))?;
                let mut flow = Flow::Next;
                for (key, value) in entries {
                    has_run = true;
                    let key = Operand::placed(key, map.kind().key);
                    let value = Operand::placed(value, map.kind().value);
                    flow = self.turn(branch, key, &value, known)?;
                    if flow == Flow::Break {
                        break;
                    }
                }
                flow
            }
            Value::Nil => Flow::Next,
            other => return self.error(format_args!("range can't iterate over {}", self.shown(other))),
        };
        debug_assert!(flow != Flow::Continue, "a turn ends what it continues");
        if !has_run && let Some(otherwise) = &branch.otherwise {
            // A `break` in this branch belongs to the outer `range`, but Go ends this one.
            let flow = self.walk_all(dot, otherwise)?;
            return Ok(if flow == Flow::Break { Flow::Next } else { flow });
        }
        Ok(Flow::Next)
    }

    fn refuse_two(&self, branch: &Branch, value: &Value) -> Result<(), String> {
        if branch.pipe.variables.len() < 2 {
            return Ok(());
        }
        let value = self.shown(value);
        self.error(format_args!("can't use {value} to iterate over more than one variable"))
    }

    fn count(
        &mut self,
        branch: &'t Branch,
        end: i64,
        has_run: &mut bool,
        number: impl Fn(i64) -> Value,
    ) -> Result<Flow, String> {
        let known = self.variables.len();
        for i in 0..end {
            *has_run = true;
            let flow = self.turn(branch, Operand::none(), &Operand::of(number(i)), known)?;
            if flow == Flow::Break {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// Executes one iteration with an element, which the variables get.
    fn turn(
        &mut self,
        branch: &'t Branch,
        index: Operand,
        item: &Operand,
        known: usize,
    ) -> Result<Flow, String> {
        self.step()?;
        let (first, second) = match branch.pipe.variables.as_slice() {
            [] => (None, None),
            [only] => (Some((only, item.clone())), None),
            [first, second, ..] => (Some((first, index)), Some((second, item.clone()))),
        };
        let count = branch.pipe.variables.len();
        for (i, (variable, value)) in first.into_iter().chain(second).enumerate() {
            if branch.pipe.is_assignment {
                self.assign(&variable.name, value)?;
            } else {
                // The pipe declared the variables, so they are on top, the last one topmost.
                self.variables[known - count + i].1 = value;
            }
        }
        let flow = self.walk_all(item, &branch.body)?;
        self.variables.truncate(known);
        Ok(if flow == Flow::Continue { Flow::Next } else { flow })
    }
}
