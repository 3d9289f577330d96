//! What private keys in PEM are locked with: PBES2 of PKCS#8, and the older headers of OpenSSL.

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use des::TdesEde3;
use zeroize::Zeroizing;

use super::super::SshFlaw;
use super::der::{Der, tag};
use super::stretch::{self, Round};

/// The most rounds of PBKDF2, a few seconds of work; OpenSSL makes 2,048 by default, and OWASP advises 600,000 or more.
const MOST_ROUNDS: u32 = 2_000_000;

/// How a key is locked, and the key.
#[derive(Debug)]
pub(super) struct Lock<'d> {
    stretch: Stretch<'d>,
    cipher: BlockCipher,
    start: Vec<u8>,
    locked: &'d [u8],
}

#[derive(Debug)]
enum Stretch<'d> {
    Md5,
    Pbkdf2 { round: Round, salt: &'d [u8], rounds: u32 },
}

/// Ciphers, each chained by CBC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockCipher {
    Aes128,
    Aes192,
    Aes256,
    TripleDes,
}

impl BlockCipher {
    fn of_name(name: &str) -> Option<Self> {
        match name {
            "AES-128-CBC" => Some(Self::Aes128),
            "AES-192-CBC" => Some(Self::Aes192),
            "AES-256-CBC" => Some(Self::Aes256),
            "DES-EDE3-CBC" => Some(Self::TripleDes),
            _ => None,
        }
    }

    fn of_object(object: &[u8]) -> Option<Self> {
        match object {
            [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x02] => Some(Self::Aes128),
            [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x16] => Some(Self::Aes192),
            [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x2a] => Some(Self::Aes256),
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x03, 0x07] => Some(Self::TripleDes),
            _ => None,
        }
    }

    fn key_size(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 | Self::TripleDes => 24,
            Self::Aes256 => 32,
        }
    }

    fn block_size(self) -> usize {
        if self == Self::TripleDes { 8 } else { 16 }
    }

    fn decrypt(self, key: &[u8], start: &[u8], text: &mut [u8]) {
        match self {
            Self::Aes128 => decrypt::<Aes128>(key, start, text),
            Self::Aes192 => decrypt::<Aes192>(key, start, text),
            Self::Aes256 => decrypt::<Aes256>(key, start, text),
            Self::TripleDes => decrypt::<TdesEde3>(key, start, text),
        }
    }
}

fn decrypt<C: BlockDecrypt + KeyInit>(key: &[u8], start: &[u8], text: &mut [u8]) {
    let cipher = C::new_from_slice(key).expect("the key was made in the cipher's size");
    let mut before = start.to_vec();
    for block in text.chunks_exact_mut(start.len()) {
        let locked = block.to_vec();
        cipher.decrypt_block(GenericArray::from_mut_slice(block));
        block.iter_mut().zip(&before).for_each(|(byte, before)| *byte ^= before);
        before = locked;
    }
}

impl<'d> Lock<'d> {
    /// Reads the header `DEK-Info` of a key: a cipher, and what its chain starts with.
    pub(super) fn of_header(header: &str, locked: &'d [u8]) -> Result<Self, SshFlaw> {
        let (name, start) = header.split_once(',').ok_or(SshFlaw::Damaged)?;
        let cipher =
            BlockCipher::of_name(name.trim()).ok_or_else(|| SshFlaw::Lock { scheme: name.to_owned() })?;
        let start = from_hex(start.trim()).ok_or(SshFlaw::Damaged)?;
        Self { stretch: Stretch::Md5, cipher, start, locked }.checked()
    }

    /// Reads PKCS#8's `EncryptedPrivateKeyInfo`.
    pub(super) fn of_pkcs8(data: &'d [u8]) -> Result<Self, SshFlaw> {
        const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
        const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];
        const SCRYPT: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x04, 0x0b];
        let damaged = || SshFlaw::Damaged;
        let unknown = |scheme: &str| SshFlaw::Lock { scheme: scheme.to_owned() };
        let mut whole = Der::new(data).inside(tag::SEQUENCE).ok_or_else(damaged)?;
        let mut scheme = whole.inside(tag::SEQUENCE).ok_or_else(damaged)?;
        let locked = whole.read(tag::OCTET_STRING).ok_or_else(damaged)?;
        if scheme.read(tag::OBJECT).ok_or_else(damaged)? != PBES2 {
            return Err(unknown("a scheme of PKCS#8 other than PBES2"));
        }
        let mut parts = scheme.inside(tag::SEQUENCE).ok_or_else(damaged)?;
        let mut derivation = parts.inside(tag::SEQUENCE).ok_or_else(damaged)?;
        match derivation.read(tag::OBJECT).ok_or_else(damaged)? {
            PBKDF2 => {}
            SCRYPT => return Err(unknown("scrypt")),
            _ => return Err(unknown("PBES2 without PBKDF2")),
        }
        let mut derivation = derivation.inside(tag::SEQUENCE).ok_or_else(damaged)?;
        let salt = derivation.read(tag::OCTET_STRING).ok_or_else(damaged)?;
        let rounds = derivation.small_number().ok_or_else(damaged)?;
        if rounds > MOST_ROUNDS {
            return Err(SshFlaw::Rounds { rounds: rounds.into(), most: MOST_ROUNDS.into() });
        }
        // The length of the key may stand here, which follows from the cipher.
        let _ = derivation.number();
        let round = match derivation.inside(tag::SEQUENCE).and_then(|mut round| round.read(tag::OBJECT)) {
            None | Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x07]) => Round::Sha1,
            Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x08]) => Round::Sha224,
            Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x09]) => Round::Sha256,
            Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0a]) => Round::Sha384,
            Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0b]) => Round::Sha512,
            Some(_) => return Err(unknown("PBKDF2 with an unknown hash")),
        };
        let mut cipher = parts.inside(tag::SEQUENCE).ok_or_else(damaged)?;
        let object = cipher.read(tag::OBJECT).ok_or_else(damaged)?;
        let start = cipher.read(tag::OCTET_STRING).unwrap_or_default().to_vec();
        let cipher = BlockCipher::of_object(object).ok_or_else(|| unknown("PBES2 with an unknown cipher"))?;
        Self { stretch: Stretch::Pbkdf2 { round, salt, rounds }, cipher, start, locked }.checked()
    }

    fn checked(self) -> Result<Self, SshFlaw> {
        let size = self.cipher.block_size();
        let is_whole =
            self.start.len() == size && !self.locked.is_empty() && self.locked.len().is_multiple_of(size);
        if is_whole { Ok(self) } else { Err(SshFlaw::Damaged) }
    }

    /// Opens it; nothing where the passphrase is plainly wrong.
    pub(super) fn open(&self, passphrase: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let size = self.cipher.key_size();
        let key = match self.stretch {
            // The first half of what the chain starts with is the salt.
            Stretch::Md5 => stretch::md5(passphrase, &self.start[..8], size),
            Stretch::Pbkdf2 { round, salt, rounds } => stretch::pbkdf2(round, passphrase, salt, rounds, size),
        };
        let mut text = Zeroizing::new(self.locked.to_vec());
        self.cipher.decrypt(&key, &self.start, &mut text);
        let padding = *text.last()?;
        let rest = text.len().checked_sub(padding.into())?;
        let is_padded = padding > 0
            && usize::from(padding) <= self.cipher.block_size()
            && text[rest..].iter().all(|&byte| byte == padding);
        text.truncate(rest);
        is_padded.then_some(text)
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| digit.try_into().ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
