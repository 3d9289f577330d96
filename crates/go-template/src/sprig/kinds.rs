//! Functions that return the type or kind of a value.

use crate::functions::Function;
use crate::value::{ANY, Type};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("typeOf", &[ANY], |a, _| Ok(a.value(0).type_name().into())).light(),
    Function::new(
        "typeIs",
        &[TEXT, ANY],
        |a, _| Ok((a.bytes(0) == a.value(1).type_name().as_bytes()).into()),
    )
    .light(),
    Function::new("typeIsLike", &[TEXT, ANY], |a, _| {
        let name = a.value(1).type_name();
        let wanted = a.bytes(0);
        Ok((wanted == name.as_bytes() || Some(wanted) == name.strip_prefix('*').map(str::as_bytes)).into())
    })
    .light(),
    Function::new("kindOf", &[ANY], |a, _| Ok(a.value(0).kind_name().into())).light(),
    Function::new(
        "kindIs",
        &[TEXT, ANY],
        |a, _| Ok((a.bytes(0) == a.value(1).kind_name().as_bytes()).into()),
    )
    .light(),
    Function::new("deepEqual", &[ANY, ANY], |a, budget| Ok(budget.are_equal(a.value(0), a.value(1))?.into())),
];
