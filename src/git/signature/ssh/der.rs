//! A reader for the part of DER that private keys need.

/// Types of values.
pub(super) mod tag {
    pub(crate) const INTEGER: u8 = 0x02;
    pub(crate) const OCTET_STRING: u8 = 0x04;
    pub(crate) const OBJECT: u8 = 0x06;
    pub(crate) const SEQUENCE: u8 = 0x30;
    /// The number 0 of optional values.
    pub(crate) const NUMBER_0: u8 = 0xa0;
}

/// A sequence of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Der<'d>(&'d [u8]);

impl<'d> Der<'d> {
    pub(super) fn new(bytes: &'d [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the content of the next value, if it has a type.
    pub(super) fn read(&mut self, tag: u8) -> Option<&'d [u8]> {
        let (&found, rest) = self.0.split_first()?;
        if found != tag {
            return None;
        }
        let (&length, mut rest) = rest.split_first()?;
        let mut length = usize::from(length);
        if length >= 0x80 {
            let number = length - 0x80;
            if !(1..=4).contains(&number) {
                return None;
            }
            let (bytes, after) = rest.split_at_checked(number)?;
            length = bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
            rest = after;
        }
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(content)
    }

    /// Returns the values within the next one.
    pub(super) fn inside(&mut self, tag: u8) -> Option<Self> {
        self.read(tag).map(Self)
    }

    /// Returns the next value, a number that is not negative, without leading zeros.
    pub(super) fn number(&mut self) -> Option<&'d [u8]> {
        let bytes = self.read(tag::INTEGER)?;
        if bytes.first().is_none_or(|&first| first >= 0x80) {
            return None;
        }
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        Some(&bytes[zeros..])
    }

    /// Returns the next value, a small number.
    pub(super) fn small_number(&mut self) -> Option<u32> {
        let bytes = self.number()?;
        (bytes.len() <= 4).then(|| bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_one_by_one() {
        let mut der = Der::new(&[0x30, 0x07, 0x02, 0x02, 0x00, 0x80, 0x04, 0x01, 0x07, 0x06, 0x00]);
        let mut inside = der.inside(tag::SEQUENCE).unwrap();
        assert_eq!(inside.read(tag::OCTET_STRING), None);
        assert_eq!(inside.number(), Some(&[0x80][..]));
        assert_eq!(inside.read(tag::OCTET_STRING), Some(&[7][..]));
        assert_eq!(inside.read(tag::OCTET_STRING), None);
        assert_eq!(der.read(tag::OBJECT), Some(&[][..]));
        let long = [&[0x04, 0x82, 0x01, 0x00][..], &[9; 256]].concat();
        assert_eq!(Der::new(&long).read(tag::OCTET_STRING), Some(&[9; 256][..]));
        assert_eq!(Der::new(&[2, 3, 1, 0, 0]).small_number(), Some(0x1_0000));
        assert_eq!(Der::new(&[2, 1, 0]).number(), Some(&[][..]));
    }

    #[test]
    fn truncated_or_unsupported_der_values_are_none() {
        for bytes in [
            &[][..],
            &[4],
            &[4, 1],
            &[4, 0x80],
            &[4, 0x82, 1],
            &[4, 0x85, 0, 0, 0, 0, 0],
            &[4, 0x84, 255, 255, 255, 255],
        ] {
            assert_eq!(Der::new(bytes).read(tag::OCTET_STRING), None, "{bytes:?}");
        }
        for bytes in [&[2, 0][..], &[2, 1, 0x80], &[2, 5, 1, 0, 0, 0, 0]] {
            assert_eq!(Der::new(bytes).small_number(), None, "{bytes:?}");
        }
    }
}
