//! The PEM formats of private keys: PKCS#1, SEC1 and PKCS#8, plain or with `DEK-Info`.

use ssh_key::PrivateKey;

use super::super::SshKeyDefect;
use super::super::armor::Block;
use super::super::passphrase::Passphrase;
use super::UnlockError;
use super::cipher::EncryptedKey;
use super::der::{Der, tag};
use super::keypair::{self, Curve, RsaNumbers};

/// The format of a block's data.
#[derive(Clone, Copy)]
enum Form {
    Pkcs1,
    Sec1,
    Pkcs8,
}

/// The object identifier of Ed25519 in PKCS#8.
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// Reads a block, and decrypts it if its headers say that it is encrypted.
pub(super) fn read(
    block: &Block<'_>,
    data: &[u8],
    passphrase: &Passphrase<'_>,
) -> Result<PrivateKey, UnlockError> {
    let form = match block.label {
        "RSA PRIVATE KEY" => Form::Pkcs1,
        "EC PRIVATE KEY" => Form::Sec1,
        "PRIVATE KEY" => Form::Pkcs8,
        "ENCRYPTED PRIVATE KEY" => return Err(SshKeyDefect::EncryptedPkcs8.into()),
        "DSA PRIVATE KEY" => return Err(SshKeyDefect::Sort { sort: "DSA".to_owned() }.into()),
        _ => return Err(SshKeyDefect::NoKey.into()),
    };
    match block.header("DEK-Info") {
        Some(header) => decrypt(&EncryptedKey::new(header, data)?, form, passphrase),
        None => Ok(form.read(data)?),
    }
}

fn decrypt(
    encrypted: &EncryptedKey<'_>,
    form: Form,
    passphrase: &Passphrase<'_>,
) -> Result<PrivateKey, UnlockError> {
    if !passphrase.is_present() {
        return Err(UnlockError::NoPassphrase);
    }
    let key = passphrase.try_each(|bytes| {
        // After a decryption with the wrong passphrase all is noise, which hardly ever looks like a key.
        let Some(plain) = encrypted.decrypt(bytes) else { return Ok(None) };
        match form.read(&plain) {
            Err(SshKeyDefect::Damaged) => Ok(None),
            key => key.map(Some),
        }
    });
    Ok(key?.ok_or(SshKeyDefect::WrongPassphrase)?)
}

impl Form {
    fn read(self, data: &[u8]) -> Result<PrivateKey, SshKeyDefect> {
        match self {
            Self::Pkcs1 => pkcs1(data),
            Self::Sec1 => sec1(data, None),
            Self::Pkcs8 => pkcs8(data),
        }
    }
}

fn pkcs1(data: &[u8]) -> Result<PrivateKey, SshKeyDefect> {
    let numbers = || -> Option<RsaNumbers<'_>> {
        let mut key = Der::new(data).inside(tag::SEQUENCE)?;
        // Other versions have more than two primes.
        key.small_number().filter(|&version| version == 0)?;
        let (modulus, exponent, secret) = (key.number()?, key.number()?, key.number()?);
        let primes = [key.number()?, key.number()?];
        let (_, _) = (key.number()?, key.number()?);
        Some(RsaNumbers { modulus, exponent, secret, primes, coefficient: key.number()? })
    };
    keypair::rsa(&numbers().ok_or(SshKeyDefect::Damaged)?)
}

/// Reads a key on a curve that is named in it, or around it.
fn sec1(data: &[u8], around: Option<&[u8]>) -> Result<PrivateKey, SshKeyDefect> {
    let parts = || {
        let mut key = Der::new(data).inside(tag::SEQUENCE)?;
        key.small_number().filter(|&version| version == 1)?;
        let secret = key.read(tag::OCTET_STRING)?;
        let named = key.inside(tag::NUMBER_0).and_then(|mut inside| inside.read(tag::OBJECT));
        Some((secret, named.or(around)?))
    };
    let (secret, object) = parts().ok_or(SshKeyDefect::Damaged)?;
    let curve = Curve::from_oid(object)
        .ok_or_else(|| SshKeyDefect::Sort { sort: "EC on a curve other than NIST's".to_owned() })?;
    keypair::ecdsa(curve, secret)
}

/// The parts of a key in PKCS#8.
struct Pkcs8<'d> {
    /// The object identifier of its algorithm.
    algorithm: &'d [u8],
    /// The object identifier of its curve, if it is on one.
    curve: Option<&'d [u8]>,
    /// The key in the format of the algorithm.
    inner: &'d [u8],
}

impl<'d> Pkcs8<'d> {
    fn parse(data: &'d [u8]) -> Option<Self> {
        let mut key = Der::new(data).inside(tag::SEQUENCE)?;
        key.small_number().filter(|&version| version <= 1)?;
        let mut algorithm = key.inside(tag::SEQUENCE)?;
        let number = algorithm.read(tag::OBJECT)?;
        let curve = algorithm.read(tag::OBJECT);
        Some(Self { algorithm: number, curve, inner: key.read(tag::OCTET_STRING)? })
    }

    fn ed25519(&self) -> Result<PrivateKey, SshKeyDefect> {
        keypair::ed25519(Der::new(self.inner).read(tag::OCTET_STRING).ok_or(SshKeyDefect::Damaged)?)
    }
}

/// Reads an Ed25519 key in PKCS#8, without any work on other keys.
pub(super) fn ed25519_of_pkcs8(data: &[u8]) -> Option<PrivateKey> {
    Pkcs8::parse(data).filter(|key| key.algorithm == ED25519)?.ed25519().ok()
}

fn pkcs8(data: &[u8]) -> Result<PrivateKey, SshKeyDefect> {
    let key = Pkcs8::parse(data).ok_or(SshKeyDefect::Damaged)?;
    let sort = |sort: &str| Err(SshKeyDefect::Sort { sort: sort.to_owned() });
    match key.algorithm {
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01] => pkcs1(key.inner),
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01] => sec1(key.inner, key.curve),
        ED25519 => key.ed25519(),
        [0x2b, 0x65, 0x71] => sort("Ed448"),
        [0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01] => sort("DSA"),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a] => sort("RSA-PSS"),
        _ => sort("that PKCS#8 gives an unknown number"),
    }
}
