//! Sizes in bytes, with units.

use std::str::FromStr;

/// A number of bytes, such as `2GiB`, `500MB` or `1048576`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteSize(pub(super) u64);

/// The units: suffix and factor.
const UNITS: [(&str, u64); 15] = [
    ("", 1),
    ("B", 1),
    ("kB", 1000),
    ("KB", 1000),
    ("MB", 1000 * 1000),
    ("GB", 1000 * 1000 * 1000),
    ("TB", 1000 * 1000 * 1000 * 1000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let factor = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| *factor);
        let bytes =
            number.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
        match bytes {
            Some(0) => Err("it must be larger than 0, such as 2GiB".to_owned()),
            Some(bytes) => Ok(Self(bytes)),
            None => Err("it is not a size such as 2GiB, 500MB or 1048576".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_with_units() {
        for (text, bytes) in
            [("17", 17), ("2GiB", 2 << 30), ("2Gi", 2 << 30), ("5 MB", 5_000_000), ("1kB", 1000)]
        {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for text in ["", "GiB", "0", "0GiB", "-1", "1.5GiB", "2 gib", "99999999999TiB", "1e9"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }
}
