//! Functions that exist and always fail.
//!
//! Their results are random or secret, and a message that is rendered twice must be the same and hold no secrets.

use crate::budget::{Budget, Failure};
use crate::functions::{Arguments, Function};
use crate::value::{ANY, INT, LIST, Type, UintKind, Value};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("ago", &[ANY], changing),
    Function::new("randInt", &[INT, INT], changing),
    Function::new("shuffle", &[TEXT], changing),
    Function::new("bcrypt", &[TEXT], secret),
    Function::new("htpasswd", &[TEXT, TEXT], secret),
    Function::new("derivePassword", &[Type::Uint(UintKind::Uint32), TEXT, TEXT, TEXT, TEXT], secret),
    Function::new("encryptAES", &[TEXT, TEXT], secret),
    Function::new("genPrivateKey", &[TEXT], secret),
    Function::new("buildCustomCert", &[TEXT, TEXT], secret),
    Function::new("genCA", &[TEXT, INT], secret),
    Function::new("genCAWithKey", &[TEXT, INT, TEXT], secret),
    Function::new("genSelfSignedCert", &[TEXT, LIST, LIST, INT], secret),
    Function::new("genSelfSignedCertWithKey", &[TEXT, LIST, LIST, INT, TEXT], secret),
    Function::new("genSignedCert", &[TEXT, LIST, LIST, INT, ANY], secret),
    Function::new("genSignedCertWithKey", &[TEXT, LIST, LIST, INT, ANY, TEXT], secret),
];

fn changing(_: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    Err("this function is not supported: its result changes, and a template must always render the same text; remove it from the template".into())
}

fn secret(_: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    Err("this function is not supported: it creates keys, passwords or certificates, which must not be in rendered text; remove it from the template".into())
}
