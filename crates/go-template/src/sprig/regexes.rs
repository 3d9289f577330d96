//! Functions on regular expressions.

use std::rc::Rc;

use crate::budget::{Budget, Failure};
use crate::format::{can_backquote, quote_bytes};
use crate::functions::{Arguments, Function};
use crate::regexp::{Regexp, quote_meta};
use crate::value::{INT, Type, Value};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("regexMatch", &[TEXT, TEXT], |a, budget| {
        // An invalid expression matches nothing, but a limit still fails.
        match budget.regexp(a.text(0))? {
            Ok(regexp) => Ok(regexp.is_match(a.bytes(1), budget)?.into()),
            Err(_) => Ok(false.into()),
        }
    }),
    Function::new("mustRegexMatch", &[TEXT, TEXT], |a, budget| {
        Ok(compiled(a, budget, IsMust(true))?.is_match(a.bytes(1), budget)?.into())
    }),
    Function::new("regexFind", &[TEXT, TEXT], |a, budget| find(a, budget, IsMust(false))),
    Function::new("mustRegexFind", &[TEXT, TEXT], |a, budget| find(a, budget, IsMust(true))),
    Function::new("regexFindAll", &[TEXT, TEXT, INT], |a, budget| find_all(a, budget, IsMust(false))),
    Function::new("mustRegexFindAll", &[TEXT, TEXT, INT], |a, budget| find_all(a, budget, IsMust(true))),
    Function::new("regexReplaceAll", &[TEXT, TEXT, TEXT], |a, budget| replace(a, budget, IsMust(false))),
    Function::new("mustRegexReplaceAll", &[TEXT, TEXT, TEXT], |a, budget| replace(a, budget, IsMust(true))),
    Function::new("regexReplaceAllLiteral", &[TEXT, TEXT, TEXT], |a, budget| {
        replace_literally(a, budget, IsMust(false))
    }),
    Function::new("mustRegexReplaceAllLiteral", &[TEXT, TEXT, TEXT], |a, budget| {
        replace_literally(a, budget, IsMust(true))
    }),
    Function::new("regexSplit", &[TEXT, TEXT, INT], |a, budget| split(a, budget, IsMust(false))),
    Function::new("mustRegexSplit", &[TEXT, TEXT, INT], |a, budget| split(a, budget, IsMust(true))),
    Function::new("regexQuoteMeta", &[TEXT], |a, _| Ok(quote_meta(a.bytes(0)).into())),
];

/// True if the function's name begins with `must`.
///
/// The other functions panic in Go, and the panic names the expression.
#[derive(Debug, Clone, Copy)]
struct IsMust(bool);

fn compiled(
    arguments: Arguments<'_>,
    budget: &mut Budget<'_>,
    is_must: IsMust,
) -> Result<Rc<Regexp>, Failure> {
    budget.regexp(arguments.text(0))?.map_err(|message| {
        if is_must.0 {
            return Failure(message);
        }
        let expression = arguments.bytes(0);
        let quoted = if can_backquote(expression) {
            format!("`{}`", arguments.text(0))
        } else {
            quote_bytes(expression)
        };
        Failure(format!("regexp: Compile({quoted}): {message}"))
    })
}

fn find(arguments: Arguments<'_>, budget: &mut Budget<'_>, is_must: IsMust) -> Result<Value, Failure> {
    let regexp = compiled(arguments, budget, is_must)?;
    Ok(regexp.find(arguments.bytes(1), budget)?.unwrap_or_default().to_vec().into())
}

fn find_all(arguments: Arguments<'_>, budget: &mut Budget<'_>, is_must: IsMust) -> Result<Value, Failure> {
    let text = arguments.bytes(1);
    let found = compiled(arguments, budget, is_must)?.find_all(text, arguments.int(2), budget)?;
    if found.is_empty() {
        return Ok(Type::Slice(&Type::String).zero());
    }
    Ok(Value::texts(found.into_iter().map(|(start, end)| text[start..end].into())))
}

fn replace(arguments: Arguments<'_>, budget: &mut Budget<'_>, is_must: IsMust) -> Result<Value, Failure> {
    let regexp = compiled(arguments, budget, is_must)?;
    let template = arguments.bytes(2);
    let replaced = regexp.replace_all(arguments.bytes(1), budget, |out, captures, budget| {
        regexp.expand(out, template, captures, budget)
    })?;
    Ok(replaced.into())
}

fn replace_literally(
    arguments: Arguments<'_>,
    budget: &mut Budget<'_>,
    is_must: IsMust,
) -> Result<Value, Failure> {
    let regexp = compiled(arguments, budget, is_must)?;
    let replaced = regexp.replace_all(arguments.bytes(1), budget, |out, _, budget| {
        out.extend_from_slice(arguments.bytes(2));
        budget.step(arguments.bytes(2).len())
    })?;
    Ok(replaced.into())
}

fn split(arguments: Arguments<'_>, budget: &mut Budget<'_>, is_must: IsMust) -> Result<Value, Failure> {
    let regexp = compiled(arguments, budget, is_must)?;
    Ok(match regexp.split(arguments.bytes(1), arguments.int(2), budget)? {
        Some(parts) => Value::texts(parts.into_iter().map(Into::into)),
        None => Type::Slice(&Type::String).zero(),
    })
}
