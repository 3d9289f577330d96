//! Converts the numbers of a key into a key pair of the crate ssh-key.

use ssh_key::PrivateKey;
use ssh_key::encoding::Decode;
use ssh_key::private::{Ed25519Keypair, KeypairData};
use zeroize::Zeroizing;

use super::super::SshKeyDefect;

/// The curves of NIST that SSH has names for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// Finds a curve by its number in DER.
    pub(super) fn from_oid(object: &[u8]) -> Option<Self> {
        match object {
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07] => Some(Self::P256),
            [0x2b, 0x81, 0x04, 0x00, 0x22] => Some(Self::P384),
            [0x2b, 0x81, 0x04, 0x00, 0x23] => Some(Self::P521),
            _ => None,
        }
    }

    /// Returns the uncompressed point of a secret number.
    fn point(self, secret: &[u8]) -> Option<Vec<u8>> {
        use p256::elliptic_curve::sec1::ToEncodedPoint;
        let point = match self {
            Self::P256 => {
                point(&p256::SecretKey::from_slice(secret).ok()?.public_key().to_encoded_point(false))
            }
            Self::P384 => {
                point(&p384::SecretKey::from_slice(secret).ok()?.public_key().to_encoded_point(false))
            }
            Self::P521 => {
                point(&p521::SecretKey::from_slice(secret).ok()?.public_key().to_encoded_point(false))
            }
        };
        Some(point)
    }

    fn name(self) -> &'static str {
        match self {
            Self::P256 => "nistp256",
            Self::P384 => "nistp384",
            Self::P521 => "nistp521",
        }
    }

    /// Returns the size of the secret number in bytes.
    fn size(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }
}

fn point(bytes: &impl AsRef<[u8]>) -> Vec<u8> {
    bytes.as_ref().to_vec()
}

/// The numbers of an RSA key, as in PEM.
pub(super) struct RsaNumbers<'d> {
    pub(super) modulus: &'d [u8],
    pub(super) exponent: &'d [u8],
    pub(super) secret: &'d [u8],
    pub(super) primes: [&'d [u8]; 2],
    /// The inverse of the second prime modulo the first.
    pub(super) coefficient: &'d [u8],
}

/// Makes an RSA key.
pub(super) fn rsa(numbers: &RsaNumbers<'_>) -> Result<PrivateKey, SshKeyDefect> {
    let mut wire = Wire::new("ssh-rsa");
    let [p, q] = numbers.primes;
    for number in [numbers.modulus, numbers.exponent, numbers.secret, numbers.coefficient, p, q] {
        wire.number(number);
    }
    wire.decode()
}

/// Makes an ECDSA key; the public half is computed from the secret one.
pub(super) fn ecdsa(curve: Curve, secret: &[u8]) -> Result<PrivateKey, SshKeyDefect> {
    let zeros = secret.iter().take_while(|&&byte| byte == 0).count();
    let secret = &secret[zeros..];
    let missing = curve.size().checked_sub(secret.len()).ok_or(SshKeyDefect::Damaged)?;
    let mut whole = Zeroizing::new(vec![0; missing]);
    whole.extend_from_slice(secret);
    let point = curve.point(&whole).ok_or(SshKeyDefect::Damaged)?;
    let mut wire = Wire::new(&format!("ecdsa-sha2-{}", curve.name()));
    wire.string(curve.name().as_bytes());
    wire.string(&point);
    wire.number(secret);
    wire.decode()
}

/// Makes an Ed25519 key of its 32 secret bytes.
pub(super) fn ed25519(seed: &[u8]) -> Result<PrivateKey, SshKeyDefect> {
    let seed: Zeroizing<[u8; 32]> = Zeroizing::new(seed.try_into().map_err(|_| SshKeyDefect::Damaged)?);
    Ok(PrivateKey::from(Ed25519Keypair::from_seed(&seed)))
}

/// A key in the wire format of SSH.
struct Wire(Zeroizing<Vec<u8>>);

impl Wire {
    fn new(sort: &str) -> Self {
        // Large enough for every key, so that growing never leaves a copy of one behind.
        let mut wire = Self(Zeroizing::new(Vec::with_capacity(1 << 14)));
        wire.string(sort.as_bytes());
        wire
    }

    fn string(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).expect("a secret is smaller than 4 GiB");
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0.extend_from_slice(bytes);
    }

    /// Appends a number without leading zeros.
    /// A number whose first bit is set gets a zero byte in front, without which it would be negative.
    fn number(&mut self, bytes: &[u8]) {
        let sign: &[u8] = if bytes.first().is_some_and(|&byte| byte >= 0x80) { &[0] } else { &[] };
        let whole = Zeroizing::new([sign, bytes].concat());
        self.string(&whole);
    }

    fn decode(&self) -> Result<PrivateKey, SshKeyDefect> {
        let mut bytes = self.0.as_slice();
        let pair = KeypairData::decode(&mut bytes).map_err(|_| SshKeyDefect::Damaged)?;
        PrivateKey::new(pair, "").map_err(|_| SshKeyDefect::Damaged)
    }
}
