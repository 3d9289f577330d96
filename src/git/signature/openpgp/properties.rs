//! The properties of a key by its own signatures, as far as those are valid.
//!
//! They are checked once when the key is read; [`choice`](super::choice) applies them to a time.

use pgp::composed::{SignedSecretKey, SignedSecretSubKey};
use pgp::crypto::public_key::PublicKeyAlgorithm;
use pgp::packet::{Signature, SignatureConfig, SignatureType, Subpacket, SubpacketData};
use pgp::types::{
    EcdsaPublicParams, EddsaLegacyPublicParams, KeyDetails, PublicParams, S2kParams, SecretParams,
    StringToKey, Tag,
};

/// The properties of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyProperties {
    pub(super) primary: PartProperties,
    pub(super) users: Vec<UserProperties>,
    /// In their order in the key.
    pub(super) subkeys: Vec<PartProperties>,
}

/// The properties of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartProperties {
    /// Its short name, as gpg prints it.
    pub(super) id: String,
    /// The time of its creation, in seconds after 1970.
    pub(super) created: i64,
    /// True if its algorithm is for signatures.
    pub(super) can_sign: bool,
    /// True if its algorithm is supported.
    pub(super) is_known: bool,
    /// True if its secret half is there.
    pub(super) is_secret: bool,
    pub(super) is_revoked: bool,
    /// The statements about the part.
    ///
    /// Those about a subkey bind it to the primary key; those about the primary key are signatures on the key
    /// as a whole.
    pub(super) statements: Vec<Statement>,
}

/// The properties of one user of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UserProperties {
    pub(super) statements: Vec<Statement>,
    /// The time of the last revocation.
    pub(super) revoked: Option<i64>,
}

/// The content of one signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The time of its creation.
    pub(super) created: i64,
    /// The time of its expiry.
    pub(super) end: Option<i64>,
    /// The lifetime of the part, in seconds.
    pub(super) lifetime: Option<i64>,
    /// True if the part is for signing; `None` if the signature does not tell.
    pub(super) is_for_signing: Option<bool>,
}

impl KeyProperties {
    /// Checks the signatures of a key.
    pub(super) fn of(key: &SignedSecretKey) -> Self {
        let public = key.primary_key.public_key();
        let details = &key.details;
        // Revocations can also be among the others.
        let own = || details.revocation_signatures.iter().chain(&details.direct_signatures);
        let holds = |signature: &&Signature| signature.verify_key(public).is_ok();
        let is = |signature: &Signature, kind| signature.typ() == Some(kind);
        let primary = PartProperties {
            is_revoked: own().any(|one| is(one, SignatureType::KeyRevocation) && holds(&one)),
            statements: own()
                .filter(|one| is(one, SignatureType::Key) && holds(one))
                .map(Statement::of)
                .collect(),
            ..PartProperties::of(&key.primary_key, key.primary_key.secret_params())
        };
        let user = |user: &pgp::types::SignedUser| {
            let mut properties = UserProperties::default();
            for signature in &user.signatures {
                if signature.verify_certification(public, Tag::UserId, &user.id).is_err() {
                    continue;
                }
                let statement = Statement::of(signature);
                if is(signature, SignatureType::CertRevocation) {
                    properties.revoked = properties.revoked.max(Some(statement.created));
                } else {
                    properties.statements.push(statement);
                }
            }
            properties
        };
        Self {
            primary,
            users: details.users.iter().map(user).collect(),
            subkeys: key.secret_subkeys.iter().map(|subkey| PartProperties::of_subkey(key, subkey)).collect(),
        }
    }
}

impl PartProperties {
    fn of(key: &impl KeyDetails, secret: &SecretParams) -> Self {
        Self {
            id: key.legacy_key_id().to_string().to_uppercase(),
            created: key.created_at().as_secs().into(),
            can_sign: can_sign(key.algorithm()),
            is_known: is_known(key.public_params()),
            is_secret: is_secret(secret),
            is_revoked: false,
            statements: Vec::new(),
        }
    }

    fn of_subkey(key: &SignedSecretKey, subkey: &SignedSecretSubKey) -> Self {
        let primary = key.primary_key.public_key();
        let public = subkey.key.public_key();
        let mut properties = Self::of(&subkey.key, subkey.key.secret_params());
        for signature in &subkey.signatures {
            if signature.verify_subkey_binding(primary, public).is_err() {
                continue;
            }
            if signature.typ() == Some(SignatureType::SubkeyRevocation) {
                properties.is_revoked = true;
                continue;
            }
            let statement = Statement::of(signature);
            // A signing subkey without a signature of its own over the primary key is not accepted.
            let is_cross_certified = signature
                .embedded_signature()
                .is_some_and(|back| back.verify_primary_key_binding(public, primary).is_ok());
            if is_cross_certified || !statement.is_for_signing.unwrap_or(properties.can_sign) {
                properties.statements.push(statement);
            }
        }
        properties
    }
}

impl Statement {
    fn of(signature: &Signature) -> Self {
        let seconds = |duration: pgp::types::Duration| i64::from(duration.as_secs());
        // Zero is forever.
        let lasting =
            |duration: Option<pgp::types::Duration>| duration.map(seconds).filter(|&seconds| seconds > 0);
        let created = signature.created().map_or(0, |time| i64::from(time.as_secs()));
        let mut subpackets = signature.config().into_iter().flat_map(SignatureConfig::hashed_subpackets);
        Self {
            created,
            end: lasting(signature.signature_expiration_time()).map(|seconds| created + seconds),
            lifetime: lasting(signature.key_expiration_time()),
            is_for_signing: subpackets.find_map(|subpacket: &Subpacket| match &subpacket.data {
                SubpacketData::KeyFlags(flags) => Some(flags.sign()),
                _ => None,
            }),
        }
    }
}

fn can_sign(algorithm: PublicKeyAlgorithm) -> bool {
    use PublicKeyAlgorithm as Algorithm;
    matches!(
        algorithm,
        Algorithm::RSA
            | Algorithm::RSASign
            | Algorithm::DSA
            | Algorithm::ECDSA
            | Algorithm::EdDSALegacy
            | Algorithm::Ed25519
            | Algorithm::Ed448
    )
}

fn is_known(parameters: &PublicParams) -> bool {
    !matches!(
        parameters,
        PublicParams::Unknown { .. }
            // Its signatures cannot be checked here.
            | PublicParams::ECDSA(
                EcdsaPublicParams::Secp256k1 { .. } | EcdsaPublicParams::Unsupported { .. }
            )
            | PublicParams::EdDSALegacy(EddsaLegacyPublicParams::Unsupported { .. })
    )
}

/// Returns true if a secret half is there, encrypted or not, rather than a stub.
fn is_secret(secret: &SecretParams) -> bool {
    let SecretParams::Encrypted(locked) = secret else { return true };
    match locked.string_to_key_params() {
        S2kParams::Cfb { s2k, .. } | S2kParams::MalleableCfb { s2k, .. } | S2kParams::Aead { s2k, .. } => {
            !matches!(s2k, StringToKey::Private { .. })
        }
        _ => true,
    }
}
