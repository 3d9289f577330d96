//! Evaluates fields, methods and map keys.

use std::sync::Arc;

use super::call::{CallArguments, Target};
use super::{Operand, State};
use crate::value::{ANY, Type, Value};

impl<'t> State<'t, '_, '_> {
    /// Evaluates a chain of fields of a value; the last field gets the arguments.
    pub(super) fn fields(
        &mut self,
        dot: &Operand,
        receiver: Operand,
        fields: &[Arc<str>],
        given: CallArguments<'t>,
    ) -> Result<Operand, String> {
        let Some((end, before)) = fields.split_last() else { return Ok(receiver) };
        let mut receiver = receiver;
        for name in before {
            receiver = self.field(dot, &receiver, name, CallArguments::nothing(given.place))?;
        }
        self.field(dot, &receiver, end, given)
    }

    fn field(
        &mut self,
        dot: &Operand,
        receiver: &Operand,
        name: &str,
        given: CallArguments<'t>,
    ) -> Result<Operand, String> {
        if receiver.is_none() {
            return Ok(Operand::none());
        }
        let type_name = receiver.type_name();
        let value = receiver.value.indirect();
        if matches!(value, Value::Nil) {
            return self.error(format_args!("nil pointer evaluating {type_name}.{name}"));
        }
        if let Some((method, value)) = value.method(name) {
            let target = Target::Method(method, value);
            return self.call(dot, &target, given);
        }
        let has_arguments = !given.terms.is_empty() || given.last.is_some();
        match &value {
            Value::Struct(object) => {
                if let Some((field, value)) = object.described_field(name) {
                    if !field.is_exported() {
                        return self
                            .error(format_args!("{name} is an unexported field of struct type {type_name}"));
                    }
                    if has_arguments {
                        return self
                            .error(format_args!("{name} has arguments but cannot be invoked as function"));
                    }
                    return Ok(Operand::placed(value, field.of));
                }
            }
            Value::Map(map) if map.kind().key == Type::String || map.kind().key == ANY => {
                if has_arguments {
                    return self.error(format_args!("{name} is not a method but has arguments"));
                }
                let found = map.get(&Value::from(name));
                return Ok(found.map_or_else(Operand::none, |value| Operand::placed(value, map.kind().value)));
            }
            Value::Pointer(pointer) => {
                let knows_field = match pointer.to() {
                    Type::Struct(kind) => kind.has_field(name),
                    _ => true,
                };
                if knows_field {
                    return self.error(format_args!("nil pointer evaluating {type_name}.{name}"));
                }
            }
            _ => {}
        }
        self.error(format_args!("can't evaluate field {name} in type {type_name}"))
    }
}
