//! From a passphrase to a key for a cipher.

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use zeroize::{Zeroize, Zeroizing};

/// The hash that PBKDF2 goes round with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// PBKDF2 as RFC 8018 has it.
pub(super) fn pbkdf2(
    round: Round,
    passphrase: &[u8],
    salt: &[u8],
    rounds: u32,
    size: usize,
) -> Zeroizing<Vec<u8>> {
    match round {
        Round::Sha1 => repeat::<Hmac<Sha1>>(passphrase, salt, rounds, size),
        Round::Sha224 => repeat::<Hmac<Sha224>>(passphrase, salt, rounds, size),
        Round::Sha256 => repeat::<Hmac<Sha256>>(passphrase, salt, rounds, size),
        Round::Sha384 => repeat::<Hmac<Sha384>>(passphrase, salt, rounds, size),
        Round::Sha512 => repeat::<Hmac<Sha512>>(passphrase, salt, rounds, size),
    }
}

fn repeat<M: Mac + KeyInit + Clone>(
    passphrase: &[u8],
    salt: &[u8],
    rounds: u32,
    size: usize,
) -> Zeroizing<Vec<u8>> {
    let keyed = <M as KeyInit>::new_from_slice(passphrase).expect("HMAC takes keys of any length");
    let mut key = Zeroizing::new(Vec::with_capacity(size + 64));
    for number in 1_u32.. {
        if key.len() >= size {
            break;
        }
        let first = keyed.clone().chain_update(salt).chain_update(number.to_be_bytes());
        let mut last = first.finalize().into_bytes();
        let mut sum = last.clone();
        for _ in 1..rounds {
            last = keyed.clone().chain_update(&last).finalize().into_bytes();
            sum.iter_mut().zip(&last).for_each(|(sum, byte)| *sum ^= byte);
        }
        key.extend_from_slice(&sum);
        sum.as_mut_slice().zeroize();
        last.as_mut_slice().zeroize();
    }
    key.truncate(size);
    key
}

/// How OpenSSL stretches passphrases for the headers of PEM: one round of MD5.
pub(super) fn md5(passphrase: &[u8], salt: &[u8], size: usize) -> Zeroizing<Vec<u8>> {
    let mut key = Zeroizing::new(Vec::with_capacity(size + 16));
    let mut last = Zeroizing::new(Vec::new());
    while key.len() < size {
        let hash = Md5::new().chain_update(&*last).chain_update(passphrase).chain_update(salt);
        last = Zeroizing::new(hash.finalize().to_vec());
        key.extend_from_slice(&last);
    }
    key.truncate(size);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 6070, and one for SHA-256 that is widely known.
    #[test]
    fn pbkdf2_gives_the_keys_of_its_vectors() {
        for (round, passphrase, salt, rounds, expected) in [
            (Round::Sha1, &b"password"[..], &b"salt"[..], 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
            (Round::Sha1, b"password", b"salt", 4096, "4b007901b765489abead49d926f721d065a429c1"),
            (
                Round::Sha1,
                b"passwordPASSWORDpassword",
                b"saltSALTsaltSALTsaltSALTsaltSALTsalt",
                4096,
                "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038",
            ),
            (
                Round::Sha256,
                b"password",
                b"salt",
                2,
                "ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43",
            ),
        ] {
            let key = pbkdf2(round, passphrase, salt, rounds, expected.len() / 2);
            let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, expected);
        }
    }
}
