//! Implements `print` and `println`, and the output of actions.

use super::flags::Flags;
use super::value::Printer;
use crate::budget::Failure;
use crate::value::Value;

/// Go's `fmt.Sprint`: adds a space between two arguments if neither is a string.
pub(crate) fn print(values: &[Value], most: usize) -> Result<Vec<u8>, Failure> {
    let mut printer = Printer::new(most);
    let mut before_is_text = true;
    for (i, value) in values.iter().enumerate() {
        let is_text = matches!(value, Value::String(_));
        if i > 0 && !is_text && !before_is_text {
            printer.out.push(b' ');
        }
        printer.argument(&Flags::default(), value, 'v')?;
        before_is_text = is_text;
    }
    Ok(printer.out)
}

/// Go's `fmt.Sprintln`: adds spaces between all arguments, and a line break.
pub(crate) fn print_line(values: &[Value], most: usize) -> Result<Vec<u8>, Failure> {
    let mut printer = Printer::new(most);
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            printer.out.push(b' ');
        }
        printer.argument(&Flags::default(), value, 'v')?;
    }
    printer.out.push(b'\n');
    Ok(printer.out)
}

/// Formats one value as `%v` does.
pub(crate) fn print_value(value: &Value, most: usize) -> Result<Vec<u8>, Failure> {
    print(std::slice::from_ref(value), most)
}
