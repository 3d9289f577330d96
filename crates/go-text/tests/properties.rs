//! Properties that hold for every text.

use proptest::prelude::*;
use tagboat_go_text::{Regexp, parse_float, quote_meta};

const MAX_SIZE: usize = 10 << 20;

/// Generates texts, many of which are valid expressions.
fn expressions() -> impl Strategy<Value = String> {
    r"([abAä1.\-\[\](){}|*+?^$\\,:<>=!_&~&]|\(\?i\)|\\[dDwWsSbBpPQEAzx018a]|\{1,2\}|\[\^?a-c|\[:alpha:\]|\(\?P<n>){0,12}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A short expression that is accepted compiles.
    /// The error "too large" would hide a difference between front end and engine.
    #[test]
    fn no_short_expression_is_too_large(expression in expressions()) {
        if let Err(error) = Regexp::compile_within(&expression, MAX_SIZE) {
            prop_assert!(!error.to_string().contains("too large"), "{error}");
        }
    }

    #[test]
    fn any_text_is_an_expression_or_an_error(expression in ".{0,40}", text in ".{0,20}", extract in ".{0,20}") {
        if let Ok(regexp) = Regexp::compile_within(&expression, MAX_SIZE)
            && let Some(captures) = regexp.captures(text.as_bytes())
        {
            let mut out = Vec::new();
            regexp.expand(&mut out, extract.as_bytes(), &captures, |_| Ok::<_, ()>(())).unwrap();
            prop_assert!(extract.contains('$') || out == extract.as_bytes());
        }
    }

    #[test]
    fn a_quoted_text_matches_itself(text in ".{0,20}", other in ".{0,20}") {
        let quoted = String::from_utf8(quote_meta(text.as_bytes())).unwrap();
        let regexp = Regexp::compile_within(&format!("^{quoted}$"), MAX_SIZE).unwrap();
        prop_assert!(regexp.is_match(text.as_bytes()));
        prop_assert_eq!(regexp.is_match(other.as_bytes()), other == text);
    }

    #[test]
    fn numbers_printed_by_rust_are_parsed(number: f64) {
        if number.is_finite() {
            prop_assert_eq!(parse_float(&number.to_string()), Ok(number));
            prop_assert_eq!(parse_float(&format!("{number:e}")), Ok(number));
        }
    }

    #[test]
    fn any_text_is_a_number_or_an_error(text in r"[-+0-9a-fA-FxXpP._ein ]{0,12}|.{0,20}") {
        prop_assert!(parse_float(&text).is_err() || text.is_ascii());
    }
}
