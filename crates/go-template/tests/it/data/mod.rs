//! The data of the cases, equal to the data in `hack/oracle/template`.

mod flux;
mod kinds;

use tagboat_go_template::{Pointer, Value};

/// Returns the data of a name.
pub(crate) fn named(name: &str) -> Value {
    match name {
        "flux" => flux::sample(),
        "flux-pointer" => Value::Pointer(Pointer::new(&flux::DATA, flux::sample())),
        "kinds" => kinds::sample(),
        "nil" => Value::Nil,
        "list" => Value::list(vec![Value::int(1), "two".into(), Value::Nil]),
        "text" => "text".into(),
        other => panic!("there is no data named {other}"),
    }
}
