//! The packets of a key, cleaned up before they are parsed.
//!
//! A missing secret part is a stub (an extension of gpg): a few bytes in its place. Old programs leave the name of a
//! cipher in a stub, after which a parser expects the first bytes of such a cipher, so it is removed. Trust packets, as
//! in key rings, are left out.

use zeroize::Zeroizing;

/// Types of packets.
const SECRET_KEY: u8 = 5;
const SECRET_SUBKEY: u8 = 7;
const TRUST: u8 = 12;

/// Returns the packets of a key without those that confuse parsers.
pub(super) fn normalize(mut bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut normalized = Zeroizing::new(Vec::with_capacity(bytes.len()));
    while !bytes.is_empty() {
        // If the packets cannot be separated, the parser will report it.
        let Some((kind, head, length)) =
            header(bytes).filter(|(_, head, length)| head + length <= bytes.len())
        else {
            normalized.extend_from_slice(bytes);
            break;
        };
        let (packet, rest) = bytes.split_at(head + length);
        if kind != TRUST {
            let start = normalized.len();
            normalized.extend_from_slice(packet);
            if [SECRET_KEY, SECRET_SUBKEY].contains(&kind)
                && let Some(place) = cipher_of_stub(&packet[head..])
            {
                normalized[start + head + place] = 0;
            }
        }
        bytes = rest;
    }
    normalized
}

/// Returns the type of the first packet, and the lengths of header and content.
fn header(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let first = *bytes.first()?;
    let number = |from: usize, size: usize| {
        let bytes = bytes.get(from..from + size)?;
        Some(bytes.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    };
    match first >> 6 {
        0b11 => {
            let kind = first & 0x3f;
            let length = *bytes.get(1)?;
            match length {
                0..192 => Some((kind, 2, length.into())),
                192..224 => Some((kind, 3, ((usize::from(length) - 192) << 8) + number(2, 1)? + 192)),
                255 => Some((kind, 6, number(2, 4)?)),
                // Partial lengths; no key has them.
                _ => None,
            }
        }
        0b10 => {
            let kind = first >> 2 & 0x0f;
            let size = match first & 0b11 {
                0 => 1,
                1 => 2,
                2 => 4,
                _ => return None,
            };
            Some((kind, 1 + size, number(1, size)?))
        }
        _ => None,
    }
}

/// Returns the position of the cipher in a secret part that is a stub.
///
/// A stub ends with its kind of protection (254 or 255), the cipher, the number 101, a hash, `GNU`, and 1; or 2 and the
/// serial number of a card, with its length.
fn cipher_of_stub(content: &[u8]) -> Option<usize> {
    let places = memchr::memmem::rfind_iter(content, b"GNU");
    for place in places {
        let before = content.get(place.checked_sub(4)?..place)?;
        let is_stub = before[0] >= 254 && before[2] == 101;
        let is_at_end = match content.get(place + 3..)? {
            [1] => true,
            [2, length, serial @ ..] => serial.len() == usize::from(*length),
            _ => false,
        };
        if is_stub && is_at_end {
            return Some(place - 3);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cipher_of_a_stub_is_taken_out() {
        for (content, expected) in [
            (&b"key\xfe\x07\x65\x02GNU\x01"[..], &b"key\xfe\x00\x65\x02GNU\x01"[..]),
            (b"key\xff\x03\x65\x00GNU\x01", b"key\xff\x00\x65\x00GNU\x01"),
            (b"key\xff\x03\x65\x00GNU\x02\x02ab", b"key\xff\x00\x65\x00GNU\x02\x02ab"),
            (b"key\xfe\x07\x65\x02GNU\x01more", b"key\xfe\x07\x65\x02GNU\x01more"),
            (b"key\xfe\x07\x03\x02GNU\x01", b"key\xfe\x07\x03\x02GNU\x01"),
            (b"GNU\x01", b"GNU\x01"),
        ] {
            let length = u8::try_from(content.len()).unwrap();
            for head in [vec![0x80 | 5 << 2, length], vec![0x81 | 7 << 2, 0, length], vec![0xc5, length]] {
                let packet = [head.as_slice(), content].concat();
                assert_eq!(
                    *normalize(&packet),
                    [head.as_slice(), expected].concat(),
                    "{}",
                    content.escape_ascii()
                );
            }
            let other = [&[0x80 | 2 << 2, length], content].concat();
            assert_eq!(*normalize(&other), other, "a signature is left as it is");
        }
    }

    #[test]
    fn trust_packets_are_removed_and_malformed_data_stays() {
        assert_eq!(*normalize(&[0xcc, 1, 9, 0xcd, 1, 65, 0xb0, 1, 6]), [0xcd, 1, 65]);
        for bytes in [&[0xcd, 5, 65][..], &[0xcd], &[0x05, 1], &[0xcd, 224, 1], &[0xcd, 255, 0, 0, 0, 9, 1]] {
            assert_eq!(*normalize(bytes), bytes);
        }
    }
}
