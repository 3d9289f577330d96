//! Tests of corrupt keys, truncated or with a wrong bit.
//! Each leads to an error message or to a key that still signs, and never to a panic.

use std::collections::BTreeMap;

use pgp::composed::{Deserializable, SignedSecretKey};
use pgp::crypto::aead::AeadAlgorithm;
use pgp::crypto::sym::SymmetricKeyAlgorithm;
use pgp::ser::Serialize;
use pgp::types::{Password, S2kParams, StringToKey};
use tagboat::git::{CommitTime, Keyring, SigningKey, SigningKeyError, SigningKeyKind, unlock_signing_key};
use tagboat::secrets::{Secret, SecretData};
use tagboat::tenancy::Capacity;

use super::PASSPHRASE;
use super::gpg_home::GpgHome;
use super::ssh_signer::SshSigner;

const NOW: CommitTime = CommitTime { seconds: 2_000_000_000, offset: 0 };

fn data(pairs: &[(&str, &[u8])]) -> BTreeMap<String, Secret> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect()
}

/// Unlocks a key without a cache.
fn unlock_anew(kind: SigningKeyKind, data: &BTreeMap<String, Secret>) -> Result<SigningKey, SigningKeyError> {
    unlock_signing_key(kind, SecretData { name: "n/key", data }, NOW)
}

async fn unlock(
    keyring: &Keyring,
    kind: SigningKeyKind,
    data: &BTreeMap<String, Secret>,
) -> Result<SigningKey, SigningKeyError> {
    keyring.unlock(kind, "n/key", data.clone(), NOW).await
}

/// Truncates a key at many places and flips a bit at many others.
fn assert_no_panic(kind: SigningKeyKind, name: &str, whole: &[u8]) {
    let wrecks = (0..whole.len()).step_by(1 + whole.len() / 150).flat_map(|place| {
        let mut turned = whole.to_vec();
        turned[place] ^= 1 << (place % 8);
        [whole[..place].to_vec(), turned]
    });
    for wreck in wrecks {
        match unlock_anew(kind, &data(&[(name, &wreck)])) {
            Ok(key) => assert!(key.sign(b"text", NOW).unwrap().starts_with("-----BEGIN ")),
            Err(error) => assert!(error.to_string().contains("secret 'key'"), "{error}"),
        }
    }
}

#[test]
fn a_damaged_openpgp_key_ends_in_a_sentence() {
    let home = GpgHome::new();
    let key = home.key("ed25519", "sign", "");
    home.subkey(&key, "nistp256/ecdsa", "sign", "");
    let bytes = home.export(&["--export-secret-keys"], &key, "");
    assert_no_panic(SigningKeyKind::OpenPgp, "git.asc", &bytes);
    assert_no_panic(SigningKeyKind::OpenPgp, "git.asc", home.secret_key(&key, "").as_bytes());
    let rsa = home.key("rsa2048", "sign", "");
    assert_no_panic(SigningKeyKind::OpenPgp, "git.asc", &home.export(&["--export-secret-keys"], &rsa, ""));
}

#[test]
fn a_damaged_ssh_key_ends_in_a_sentence() {
    for options in [
        &["-t", "ed25519"][..],
        &["-t", "ecdsa"],
        &["-t", "ecdsa", "-m", "PEM"],
        &["-t", "ecdsa", "-m", "PKCS8"],
        &["-t", "rsa", "-b", "2048", "-m", "PKCS8"],
    ] {
        let private = SshSigner::new(options, "").private;
        assert_no_panic(SigningKeyKind::Ssh, "identity", private.as_bytes());
    }
}

/// A derived key is cached as long as the Secret does not change.
#[tokio::test]
async fn a_key_is_unlocked_once() {
    let locked = SshSigner::new(&["-t", "ed25519", "-a", "100"], PASSPHRASE).private;
    let good = data(&[("identity", locked.as_bytes()), ("password", PASSPHRASE.as_bytes())]);
    let bad = data(&[("identity", locked.as_bytes()), ("password", b"hunter2")]);
    let keyring = Keyring::new(Capacity::default());
    let begin = std::time::Instant::now();
    let first = unlock(&keyring, SigningKeyKind::Ssh, &good).await.unwrap();
    let stretched = begin.elapsed();
    let begin = std::time::Instant::now();
    for _ in 0..20 {
        unlock(&keyring.clone(), SigningKeyKind::Ssh, &good).await.unwrap();
    }
    let remembered = begin.elapsed();
    assert!(remembered < stretched, "{remembered:?} for twenty times, {stretched:?} for the first");
    // Another passphrase is another Secret, and the earlier one is not cached any more.
    assert!(unlock(&keyring, SigningKeyKind::Ssh, &bad).await.is_err());
    let again = unlock(&keyring, SigningKeyKind::Ssh, &good).await.unwrap();
    assert_eq!(again.sign(b"text", NOW).unwrap(), first.sign(b"text", NOW).unwrap());
    let begin = std::time::Instant::now();
    keyring.forget("n/key");
    unlock(&keyring, SigningKeyKind::Ssh, &good).await.unwrap();
    assert!(begin.elapsed() > remembered, "a key that was forgotten is unlocked anew");
    let shown = format!("{keyring:?}{first:?}");
    assert!(shown.contains("SHA256:") && !shown.contains("identity"), "{shown}");
}

/// A key that failed is not tried again before its Secret changes.
/// A wrong passphrase costs as much as the right one. Formerly, each retry derived the key again.
#[tokio::test]
async fn a_key_that_failed_is_not_tried_again_before_its_secret_changes() {
    let locked = SshSigner::new(&["-t", "ed25519", "-a", "100"], PASSPHRASE).private;
    let bad = data(&[("identity", locked.as_bytes()), ("password", b"hunter2")]);
    let good = data(&[("identity", locked.as_bytes()), ("password", PASSPHRASE.as_bytes())]);
    let keyring = Keyring::new(Capacity::default());
    let begin = std::time::Instant::now();
    let first = unlock(&keyring, SigningKeyKind::Ssh, &bad).await.unwrap_err();
    let stretched = begin.elapsed();
    let begin = std::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(unlock(&keyring, SigningKeyKind::Ssh, &bad).await.unwrap_err(), first);
    }
    let remembered = begin.elapsed();
    assert!(remembered < stretched, "{remembered:?} for twenty times, {stretched:?} for the first");
    unlock(&keyring, SigningKeyKind::Ssh, &good).await.unwrap();
    keyring.retain(|name| name != "n/key");
    assert_eq!(format!("{keyring:?}"), "{}");
}

/// The limit is above common use: `ssh-keygen -a 256` is the most that is allowed.
#[test]
fn keys_with_as_many_rounds_as_are_allowed_are_unlocked() {
    let with_rounds = |rounds: &str| {
        let locked = SshSigner::new(&["-t", "ed25519", "-a", rounds], PASSPHRASE).private;
        let with_line_break = format!("{PASSPHRASE}\n");
        let data = data(&[("identity", locked.as_bytes()), ("password", with_line_break.as_bytes())]);
        unlock_anew(SigningKeyKind::Ssh, &data).map(|_| ())
    };
    assert_eq!((with_rounds("16"), with_rounds("256")), (Ok(()), Ok(())));
    let error = with_rounds("257").unwrap_err();
    let flaw = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        flaw.starts_with("the key in 'identity' takes 257 rounds to unlock, and 256 are allowed"),
        "{flaw}"
    );
}

/// The same ring selects another part of the same key at another time.
#[tokio::test]
async fn the_validity_of_a_key_is_checked_at_each_use() {
    let home = GpgHome::new();
    let key = home.dated_key("ed25519", "sign", "", ("20200101T000000", "20200201T000000"));
    let secret = home.secret_key(&key, "");
    let data = data(&[("git.asc", secret.as_bytes())]);
    let keyring = Keyring::new(Capacity::default());
    let at = async |seconds| {
        let time = CommitTime { seconds, offset: 0 };
        keyring.unlock(SigningKeyKind::OpenPgp, "n/key", data.clone(), time).await
    };
    for (seconds, is_good) in
        [(1_577_836_799, false), (1_577_836_800, true), (1_580_515_199, true), (1_580_515_200, false)]
    {
        assert_eq!(at(seconds).await.is_ok(), is_good, "{seconds}");
    }
    let key = at(1_577_836_800).await.unwrap();
    let existed = |seconds| key.existed_at(CommitTime { seconds, offset: 0 });
    assert_eq!((existed(1_577_836_799), existed(1_577_836_800)), (false, true));
}

/// A key is refused if unlocking it takes too much memory.
/// The maker of a key chose that memory, up to 2 GiB, which is more than the program may have.
#[test]
fn a_lock_that_takes_much_memory_is_refused() {
    const SALT: [u8; 16] = *b"a salt of sixtee";
    let home = GpgHome::new();
    let open = home.export(&["--export-secret-keys"], &home.key("ed25519", "sign", ""), "");
    let mut key = SignedSecretKey::from_bytes(open.as_slice()).unwrap();
    let lock = S2kParams::Aead {
        sym_alg: SymmetricKeyAlgorithm::AES256,
        aead_mode: AeadAlgorithm::Ocb,
        s2k: StringToKey::Argon2 { salt: SALT, t: 1, p: 1, m_enc: 10 },
        nonce: vec![7; 15].into(),
    };
    key.primary_key.set_password_with_s2k(&Password::from(PASSPHRASE), lock).unwrap();
    let light = key.to_bytes().unwrap();
    let place = light.windows(SALT.len()).position(|bytes| bytes == SALT).unwrap() + SALT.len();
    let locked = |passes: u8, memory: u8| {
        let mut bytes = light.clone();
        bytes[place] = passes;
        bytes[place + 2] = memory;
        let data = data(&[("git.asc", &bytes), ("passphrase", PASSPHRASE.as_bytes())]);
        unlock_anew(SigningKeyKind::OpenPgp, &data)
    };
    assert!(locked(1, 10).unwrap().sign(b"text", NOW).unwrap().starts_with("-----BEGIN PGP SIGNATURE"));
    for (passes, memory, mebibytes) in [(1, 21, 2048), (11, 10, 1), (255, 255, 0)] {
        let error = locked(passes, memory).unwrap_err();
        let flaw = std::error::Error::source(&error).unwrap().to_string();
        let words =
            format!("the key in 'git.asc' takes {mebibytes} MiB and {passes} passes of Argon2 to unlock");
        assert!(flaw.starts_with(&words) || memory == 255, "{flaw}");
        assert!(flaw.contains("64 MiB and 10 passes are allowed"), "{flaw}");
    }
}
