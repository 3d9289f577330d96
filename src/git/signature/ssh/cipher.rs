//! Decrypts private keys in PEM that have OpenSSL's header `DEK-Info`.

use aes::{Aes128, Aes192, Aes256};
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockDecryptMut, KeyIvInit};
use des::TdesEde3;
use md5::{Digest, Md5};
use zeroize::Zeroizing;

use super::super::SshKeyDefect;

/// The bytes of the initialization vector that salt the passphrase.
const SALT: usize = 8;

/// An encrypted key, with the parameters in its header.
#[derive(Debug)]
pub(super) struct EncryptedKey<'d> {
    cipher: BlockCipher,
    iv: Vec<u8>,
    data: &'d [u8],
}

/// Ciphers, each in CBC mode.
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

    /// The size of a block and of the initialization vector, in bytes.
    fn block_size(self) -> usize {
        if self == Self::TripleDes { 8 } else { 16 }
    }
}

impl<'d> EncryptedKey<'d> {
    /// Reads the header `DEK-Info` of a key: a cipher and its initialization vector.
    pub(super) fn new(header: &str, data: &'d [u8]) -> Result<Self, SshKeyDefect> {
        let (name, iv) = header.split_once(',').ok_or(SshKeyDefect::Damaged)?;
        let cipher = BlockCipher::of_name(name.trim());
        let cipher = cipher.ok_or_else(|| SshKeyDefect::Lock { scheme: name.to_owned() })?;
        let iv = from_hex(iv.trim()).ok_or(SshKeyDefect::Damaged)?;
        let size = cipher.block_size();
        let is_complete = iv.len() == size && !data.is_empty() && data.len().is_multiple_of(size);
        if is_complete { Ok(Self { cipher, iv, data }) } else { Err(SshKeyDefect::Damaged) }
    }

    /// Decrypts the key; returns `None` if the passphrase is obviously wrong.
    pub(super) fn decrypt(&self, passphrase: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        match self.cipher {
            BlockCipher::Aes128 => self.decrypt_by::<Decryptor<Aes128>>(passphrase),
            BlockCipher::Aes192 => self.decrypt_by::<Decryptor<Aes192>>(passphrase),
            BlockCipher::Aes256 => self.decrypt_by::<Decryptor<Aes256>>(passphrase),
            BlockCipher::TripleDes => self.decrypt_by::<Decryptor<TdesEde3>>(passphrase),
        }
    }

    fn decrypt_by<D: KeyIvInit + BlockDecryptMut>(&self, passphrase: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let key = derive_key(passphrase, &self.iv[..SALT], D::key_size());
        let decryptor =
            D::new_from_slices(&key, &self.iv).expect("key and vector have the sizes of the cipher");
        let mut text = Zeroizing::new(self.data.to_vec());
        let size = decryptor.decrypt_padded_mut::<Pkcs7>(&mut text).ok()?.len();
        text.truncate(size);
        Some(text)
    }
}

/// Derives a key like OpenSSL's `EVP_BytesToKey` with one round of MD5.
/// `size` is the size of the key in bytes.
fn derive_key(passphrase: &[u8], salt: &[u8], size: usize) -> Zeroizing<Vec<u8>> {
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

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| digit.try_into().ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
