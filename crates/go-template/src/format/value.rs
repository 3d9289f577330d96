//! Formats any value, and the values inside it.

use super::flags::Flags;
use super::float::{print_complex, print_float};
use super::integer::{Integer, print_digits, print_integer};
use super::text::print_text;
use crate::budget::{Failure, MAX_VALUE_DEPTH};
use crate::value::{Map, Slice, Struct, Type, Value};

/// The address that is printed for every value.
/// Real addresses would differ from run to run.
const ADDRESS: u64 = 0x00c0_0000_0000;

/// The output of a formatting call, and its state.
pub(super) struct Printer {
    pub(super) out: Vec<u8>,
    most: usize,
    /// True while a bad verb is being reported; methods are then not called.
    is_erroring: bool,
}

impl Printer {
    pub(super) fn new(most: usize) -> Self {
        Self { out: Vec::new(), most, is_erroring: false }
    }

    /// Fails if the output exceeds the limit.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.out.len() > self.most { Err(Failure::too_large(self.out.len(), self.most)) } else { Ok(()) }
    }

    /// Formats an argument.
    pub(super) fn argument(&mut self, flags: &Flags, value: &Value, verb: char) -> Result<(), Failure> {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => flags.pad(&mut self.out, b"<nil>"),
            (Value::Nil, _) => self.bad_verb(flags, value, verb)?,
            (_, 'T') => {
                print_text(&mut self.out, flags, value.type_name().as_bytes(), 's');
            }
            (_, 'p') => self.address(flags, value, verb)?,
            _ => self.value(flags, value, verb, 0)?,
        }
        self.check()
    }

    fn value(&mut self, flags: &Flags, value: &Value, verb: char, depth: usize) -> Result<(), Failure> {
        self.check()?;
        if depth > MAX_VALUE_DEPTH {
            return Err(Failure::too_deep());
        }
        // For an argument of type `[]byte`, a bad verb is reported for each byte.
        let is_bytes = depth == 0 && matches!(value, Value::Slice(slice) if slice.has_bytes());
        if !is_bytes && self.by_method(flags, value, verb)? {
            return Ok(());
        }
        self.plain(flags, value, verb, depth)
    }

    /// Formats a value by its own method, if the verb asks for text.
    fn by_method(&mut self, flags: &Flags, value: &Value, verb: char) -> Result<bool, Failure> {
        if self.is_erroring {
            return Ok(false);
        }
        if verb == 'w' {
            self.bad_verb(flags, value, verb)?;
            return Ok(true);
        }
        if flags.sharp_v || !matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') {
            return Ok(false);
        }
        let Some(text) = value.own_text()? else { return Ok(false) };
        Ok(print_text(&mut self.out, flags, text.as_bytes(), verb))
    }

    /// Formats a value without its methods.
    fn plain(&mut self, flags: &Flags, value: &Value, verb: char, depth: usize) -> Result<(), Failure> {
        let out = &mut self.out;
        let is_known = match value {
            Value::Nil if verb == 'v' => {
                out.extend_from_slice(b"<nil>");
                true
            }
            Value::Nil => false,
            Value::Bool(truth) => {
                let is_known = matches!(verb, 't' | 'v');
                if is_known {
                    flags.pad(out, if *truth { b"true" } else { b"false" });
                }
                is_known
            }
            Value::Int(number, _) => print_integer(out, flags, Integer::signed(*number), verb),
            Value::Uint(number, _) => print_integer(out, flags, Integer::unsigned(*number), verb),
            Value::Float(number) => print_float(out, flags, *number, verb),
            Value::Complex(real, imaginary) => print_complex(out, flags, (*real, *imaginary), verb),
            Value::String(text) => print_text(out, flags, text.as_bytes(), verb),
            Value::Slice(slice) => return self.slice(flags, slice, verb, depth),
            Value::Map(map) => return self.map(flags, map, verb, depth),
            Value::Struct(object) => return self.structure(flags, object, verb, depth),
            Value::Pointer(pointer) => match pointer.target() {
                Some(target @ (Value::Slice(_) | Value::Map(_) | Value::Struct(_))) if depth == 0 => {
                    out.push(b'&');
                    return self.value(flags, target, verb, depth + 1);
                }
                _ => return self.address(flags, value, verb),
            },
            Value::Function(_) => return self.address(flags, value, verb),
        };
        if is_known { Ok(()) } else { self.bad_verb(flags, value, verb) }
    }

    fn slice(&mut self, flags: &Flags, slice: &Slice, verb: char, depth: usize) -> Result<(), Failure> {
        if matches!(verb, 's' | 'q' | 'x' | 'X')
            && let Some(bytes) = slice.bytes()
        {
            print_text(&mut self.out, flags, &bytes, verb);
            return Ok(());
        }
        if flags.sharp_v {
            // Go names the element type of a top-level argument by its alias.
            let name = if depth == 0 && slice.has_bytes() {
                "[]byte".to_owned()
            } else {
                Type::Slice(slice.of()).to_string()
            };
            self.out.extend_from_slice(name.as_bytes());
            if slice.is_nil() {
                self.out.extend_from_slice(b"(nil)");
                return Ok(());
            }
        }
        let (open, separator, close) = if flags.sharp_v { ("{", ", ", "}") } else { ("[", " ", "]") };
        self.out.extend_from_slice(open.as_bytes());
        slice.try_each(|i, item| {
            if i > 0 {
                self.out.extend_from_slice(separator.as_bytes());
            }
            self.element(flags, *slice.of(), item, verb, depth)
        })?;
        self.out.extend_from_slice(close.as_bytes());
        Ok(())
    }

    fn map(&mut self, flags: &Flags, map: &Map, verb: char, depth: usize) -> Result<(), Failure> {
        if flags.sharp_v {
            self.out.extend_from_slice(Type::Map(map.kind()).to_string().as_bytes());
            if map.is_nil() {
                self.out.extend_from_slice(b"(nil)");
                return Ok(());
            }
        }
        let (open, separator, close) = if flags.sharp_v { ("{", ", ", "}") } else { ("map[", " ", "]") };
        self.out.extend_from_slice(open.as_bytes());
        map.try_each(|i, key, value| {
            if i > 0 {
                self.out.extend_from_slice(separator.as_bytes());
            }
            self.element(flags, map.kind().key, key, verb, depth)?;
            self.out.push(b':');
            self.element(flags, map.kind().value, value, verb, depth)
        })?;
        self.out.extend_from_slice(close.as_bytes());
        Ok(())
    }

    fn structure(&mut self, flags: &Flags, object: &Struct, verb: char, depth: usize) -> Result<(), Failure> {
        if flags.sharp_v {
            self.out.extend_from_slice(object.kind().name.as_bytes());
        }
        self.out.push(b'{');
        for (i, (field, value)) in object.kind().fields.iter().zip(object.fields()).enumerate() {
            if i > 0 {
                self.out.extend_from_slice(if flags.sharp_v { b", " } else { b" " });
            }
            if flags.plus_v || flags.sharp_v {
                self.out.extend_from_slice(field.name.as_bytes());
                self.out.push(b':');
            }
            if field.is_exported() {
                self.element(flags, field.of, value, verb, depth)?;
            } else {
                // Reflection may not call methods of unexported fields.
                let before = std::mem::replace(&mut self.is_erroring, true);
                self.element(flags, field.of, value, verb, depth)?;
                self.is_erroring = before;
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Formats the value of a location with a static type.
    fn element(
        &mut self,
        flags: &Flags,
        of: Type,
        value: &Value,
        verb: char,
        depth: usize,
    ) -> Result<(), Failure> {
        if let (Value::Nil, Type::Interface(name)) = (value, of) {
            if flags.sharp_v {
                self.out.extend_from_slice(name.as_bytes());
                self.out.extend_from_slice(b"(nil)");
            } else {
                self.out.extend_from_slice(b"<nil>");
            }
            return Ok(());
        }
        self.value(flags, value, verb, depth + 1)
    }

    /// Formats the address of a value that has one.
    fn address(&mut self, flags: &Flags, value: &Value, verb: char) -> Result<(), Failure> {
        if !matches!(value, Value::Pointer(_) | Value::Function(_) | Value::Map(_) | Value::Slice(_)) {
            return self.bad_verb(flags, value, verb);
        }
        let address = if value.is_nil() { 0 } else { ADDRESS };
        let number = Integer::unsigned(address);
        match verb {
            'v' if flags.sharp_v => {
                self.out.extend_from_slice(format!("({})(", value.type_name()).as_bytes());
                if address == 0 {
                    self.out.extend_from_slice(b"nil");
                } else {
                    print_digits(&mut self.out, &Flags { sharp: true, ..*flags }, number, 'x');
                }
                self.out.push(b')');
            }
            'v' if address == 0 => flags.pad(&mut self.out, b"<nil>"),
            'v' | 'p' => {
                print_digits(&mut self.out, &Flags { sharp: !flags.sharp, ..*flags }, number, 'x');
            }
            'b' | 'o' | 'd' | 'x' | 'X' => print_digits(&mut self.out, flags, number, verb),
            _ => return self.bad_verb(flags, value, verb),
        }
        Ok(())
    }

    fn bad_verb(&mut self, flags: &Flags, value: &Value, verb: char) -> Result<(), Failure> {
        self.out.extend_from_slice(format!("%!{verb}(").as_bytes());
        if matches!(value, Value::Nil) {
            self.out.extend_from_slice(b"<nil>");
        } else {
            let before = std::mem::replace(&mut self.is_erroring, true);
            self.out.extend_from_slice(value.type_name().as_bytes());
            self.out.push(b'=');
            self.plain(flags, value, 'v', 0)?;
            self.is_erroring = before;
        }
        self.out.push(b')');
        Ok(())
    }
}
