//! Implements `printf`.

use super::flags::Flags;
use super::value::Printer;
use crate::budget::Failure;
use crate::text::first_rune;
use crate::value::Value;

/// The maximum width, precision and argument index.
const MAX_SIZE: usize = 1_000_000;

/// Go's `fmt.Sprintf`.
pub(crate) fn printf(format: &[u8], arguments: &[Value], most: usize) -> Result<Vec<u8>, Failure> {
    let mut run = Run {
        format,
        arguments,
        at: 0,
        argument: 0,
        is_reordered: false,
        is_good: true,
        printer: Printer::new(most),
    };
    while run.at < format.len() {
        run.piece()?;
        run.printer.check()?;
    }
    run.extra()?;
    Ok(run.printer.out)
}

struct Run<'f> {
    format: &'f [u8],
    arguments: &'f [Value],
    at: usize,
    /// The index of the next argument.
    argument: usize,
    /// True if an explicit index such as `[1]` was read.
    is_reordered: bool,
    /// True if the explicit indexes of this verb are valid.
    is_good: bool,
    printer: Printer,
}

impl Run<'_> {
    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    fn say(&mut self, text: &str) {
        self.printer.out.extend_from_slice(text.as_bytes());
    }

    /// Formats the text up to a percent sign, and the verb that follows.
    fn piece(&mut self) -> Result<(), Failure> {
        self.is_good = true;
        let rest = &self.format[self.at..];
        let end = rest.iter().position(|&b| b == b'%').unwrap_or(rest.len());
        self.printer.out.extend_from_slice(&rest[..end]);
        self.at += end;
        if self.at == self.format.len() {
            return Ok(());
        }
        self.at += 1;
        let mut flags = Flags::default();
        while let Some(b) = self.peek() {
            match b {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.at += 1;
        }
        let mut after_index = self.index();
        self.width(&mut flags, &mut after_index);
        if self.peek() == Some(b'.') && self.at + 1 < self.format.len() {
            self.at += 1;
            if after_index {
                self.is_good = false;
            }
            after_index = self.index();
            self.precision(&mut flags, &mut after_index);
        }
        if !after_index {
            self.index();
        }
        self.verb(flags)
    }

    fn width(&mut self, flags: &mut Flags, after_index: &mut bool) {
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.number_of_argument() {
                Some(width) => {
                    flags.width = Some(width.unsigned_abs());
                    if width < 0 {
                        flags.minus = true;
                        // Padding on the right never uses zeros.
                        flags.zero = false;
                    }
                }
                None => self.say("%!(BADWIDTH)"),
            }
            *after_index = false;
        } else {
            flags.width = self.number();
            if *after_index && flags.width.is_some() {
                self.is_good = false;
            }
        }
    }

    fn precision(&mut self, flags: &mut Flags, after_index: &mut bool) {
        if self.peek() == Some(b'*') {
            self.at += 1;
            flags.precision = self.number_of_argument().and_then(|precision| usize::try_from(precision).ok());
            if flags.precision.is_none() {
                self.say("%!(BADPREC)");
            }
            *after_index = false;
        } else {
            flags.precision = Some(self.number().unwrap_or(0));
        }
    }

    fn verb(&mut self, mut flags: Flags) -> Result<(), Failure> {
        let Some((verb, width)) = first_rune(&self.format[self.at..]) else {
            self.say("%!(NOVERB)");
            return Ok(());
        };
        self.at += width;
        if verb == '%' {
            self.printer.out.push(b'%');
            return Ok(());
        }
        if !self.is_good {
            self.say(&format!("%!{verb}(BADINDEX)"));
            return Ok(());
        }
        let Some(argument) = self.arguments.get(self.argument) else {
            self.say(&format!("%!{verb}(MISSING)"));
            return Ok(());
        };
        if matches!(verb, 'v' | 'w') {
            flags.sharp_v = std::mem::take(&mut flags.sharp);
            flags.plus_v = std::mem::take(&mut flags.plus);
        }
        self.argument += 1;
        self.printer.argument(&flags, argument, verb)
    }

    /// Reads a number from the format.
    fn number(&mut self) -> Option<usize> {
        let mut number = None;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            if number.is_some_and(|number| number > MAX_SIZE) {
                self.at = self.format.len();
                return None;
            }
            number = Some(number.unwrap_or(0) * 10 + usize::from(digit - b'0'));
            self.at += 1;
        }
        number
    }

    /// Reads a number from an argument (`*`).
    fn number_of_argument(&mut self) -> Option<isize> {
        let argument = self.arguments.get(self.argument)?;
        self.argument += 1;
        let number = match argument {
            Value::Int(number, _) => isize::try_from(*number).ok()?,
            Value::Uint(number, _) => isize::try_from(*number).ok()?,
            _ => return None,
        };
        (number.unsigned_abs() <= MAX_SIZE).then_some(number)
    }

    /// Reads an explicit index such as `[1]`, at which the next arguments begin.
    fn index(&mut self) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.is_reordered = true;
        let rest = &self.format[self.at..];
        let Some(close) = rest.iter().position(|&b| b == b']').filter(|_| rest.len() >= 3) else {
            self.at += 1;
            self.is_good = false;
            return false;
        };
        let digits = std::str::from_utf8(&rest[1..close]).ok();
        let is_number = |digits: &&str| {
            !digits.is_empty() && digits.len() < 8 && digits.bytes().all(|b| b.is_ascii_digit())
        };
        let number: Option<usize> = digits.filter(is_number).and_then(|digits| digits.parse().ok());
        self.at += close + 1;
        match number {
            Some(number) if (1..=self.arguments.len()).contains(&number) => {
                self.argument = number - 1;
                true
            }
            number => {
                self.is_good = false;
                number.is_some()
            }
        }
    }

    /// Appends the arguments that no verb used.
    fn extra(&mut self) -> Result<(), Failure> {
        if self.is_reordered || self.argument >= self.arguments.len() {
            return Ok(());
        }
        self.say("%!(EXTRA ");
        let arguments = self.arguments;
        for (i, value) in arguments[self.argument..].iter().enumerate() {
            if i > 0 {
                self.say(", ");
            }
            if !matches!(value, Value::Nil) {
                self.say(&value.type_name());
                self.say("=");
            }
            self.printer.argument(&Flags::default(), value, 'v')?;
        }
        self.say(")");
        Ok(())
    }
}
