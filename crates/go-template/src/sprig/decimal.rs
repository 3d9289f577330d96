//! Arbitrary-precision decimals, as `shopspring/decimal` implements them.

use std::cmp::Ordering;

use crate::budget::{Budget, Failure};
use crate::strconv::{FloatFormat, format_float};
use crate::value::Value;

/// The number of decimal places of a quotient.
const QUOTIENT_PLACES: i64 = 16;

/// An integer times a power of ten.
#[derive(Debug, Clone)]
pub(super) struct Decimal {
    is_negative: bool,
    /// The digits, least significant first, without leading zeros of the number.
    digits: Vec<u8>,
    exponent: i64,
}

/// Folds the operands from left to right.
pub(super) fn calculate(
    first: f64,
    others: &[f64],
    operation: fn(&Decimal, &Decimal) -> Result<Decimal, Failure>,
    budget: &mut Budget<'_>,
) -> Result<Value, Failure> {
    let mut result = Decimal::new(first)?;
    for other in others {
        let other = Decimal::new(*other)?;
        budget.step(result.digits.len().saturating_mul(other.digits.len() + 16))?;
        result = operation(&result, &other)?;
    }
    Ok(result.to_float().into())
}

impl Decimal {
    /// Converts a float by its shortest decimal form.
    fn new(number: f64) -> Result<Self, Failure> {
        if !number.is_finite() {
            let text = format_float(number, FloatFormat::General, None);
            return Err(format!("Cannot create a Decimal from {text}").into());
        }
        let text = format!("{:e}", number.abs());
        let (mantissa, exponent) = text.split_once('e').expect("Rust writes an exponent here");
        let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits: Vec<u8> =
            mantissa.bytes().rev().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        let exponent: i64 = exponent.parse().expect("Rust writes a number here");
        Ok(Self {
            is_negative: number < 0.0,
            digits: trimmed(digits),
            exponent: exponent - i64::try_from(fraction).unwrap_or(0),
        })
    }

    fn to_float(&self) -> f64 {
        let digits: String = self.digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
        if digits.is_empty() {
            return 0.0;
        }
        let number: f64 = format!("{digits}e{}", self.exponent).parse().unwrap_or(f64::NAN);
        if self.is_negative { -number } else { number }
    }

    /// Returns the digits for a lower exponent.
    fn scaled(&self, exponent: i64) -> Vec<u8> {
        shifted(&self.digits, self.exponent - exponent)
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let (left, right) = (self.scaled(exponent), other.scaled(exponent));
        let (is_negative, digits) = if self.is_negative == other.is_negative {
            (self.is_negative, sum(&left, &right))
        } else if order(&left, &right).is_lt() {
            (other.is_negative, difference(&right, &left))
        } else {
            (self.is_negative, difference(&left, &right))
        };
        Self { is_negative, digits, exponent }
    }

    pub(super) fn sub(&self, other: &Self) -> Self {
        self.add(&Self { is_negative: !other.is_negative, ..other.clone() })
    }

    pub(super) fn mul(&self, other: &Self) -> Self {
        let mut digits = vec![0u32; self.digits.len() + other.digits.len()];
        for (i, left) in self.digits.iter().enumerate() {
            let mut carry = 0;
            for (k, right) in other.digits.iter().enumerate() {
                let cell = digits[i + k] + u32::from(*left) * u32::from(*right) + carry;
                digits[i + k] = cell % 10;
                carry = cell / 10;
            }
            digits[i + other.digits.len()] += carry;
        }
        Self {
            is_negative: self.is_negative != other.is_negative,
            digits: trimmed(digits.into_iter().map(|digit| u8::try_from(digit).unwrap_or(0)).collect()),
            exponent: self.exponent + other.exponent,
        }
    }

    /// Divides, rounding half away from zero.
    pub(super) fn div(&self, other: &Self) -> Result<Self, Failure> {
        if other.digits.is_empty() {
            return Err("decimal division by 0".into());
        }
        let shift = self.exponent - other.exponent + QUOTIENT_PLACES;
        let (dividend, divisor) = (shifted(&self.digits, shift), shifted(&other.digits, -shift));
        let mut quotient = vec![0; dividend.len()];
        let mut rest: Vec<u8> = Vec::new();
        for (at, digit) in dividend.iter().enumerate().rev() {
            rest.insert(0, *digit);
            rest = trimmed(rest);
            while order(&rest, &divisor).is_ge() {
                rest = difference(&rest, &divisor);
                quotient[at] += 1;
            }
        }
        let mut digits = trimmed(quotient);
        if order(&sum(&rest, &rest), &divisor).is_ge() {
            digits = sum(&digits, &[1]);
        }
        Ok(Self { is_negative: self.is_negative != other.is_negative, digits, exponent: -QUOTIENT_PLACES })
    }
}

/// Multiplies digits by a power of ten.
/// Returns them unchanged if the result is not an integer.
fn shifted(digits: &[u8], power: i64) -> Vec<u8> {
    let zeros = if digits.is_empty() { 0 } else { usize::try_from(power).unwrap_or(0) };
    let mut shifted = vec![0; zeros];
    shifted.extend_from_slice(digits);
    shifted
}

/// Removes the number's leading zeros, which are last in the digits.
fn trimmed(mut digits: Vec<u8>) -> Vec<u8> {
    let length = digits.iter().rposition(|&digit| digit != 0).map_or(0, |at| at + 1);
    digits.truncate(length);
    digits
}

fn order(left: &[u8], right: &[u8]) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.iter().rev().cmp(right.iter().rev()))
}

fn sum(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut digits = Vec::with_capacity(left.len().max(right.len()) + 1);
    let mut carry = 0;
    for i in 0..left.len().max(right.len()) {
        let cell = left.get(i).unwrap_or(&0) + right.get(i).unwrap_or(&0) + carry;
        digits.push(cell % 10);
        carry = cell / 10;
    }
    digits.push(carry);
    trimmed(digits)
}

/// Subtracts; the left number must not be smaller.
fn difference(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut digits = Vec::with_capacity(left.len());
    let mut borrow = 0;
    for (i, digit) in left.iter().enumerate() {
        let taken = right.get(i).unwrap_or(&0) + borrow;
        borrow = u8::from(*digit < taken);
        digits.push(digit + 10 * borrow - taken);
    }
    trimmed(digits)
}
