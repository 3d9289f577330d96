//! Keys that are cut off or have a wrong bit: a sentence, or a key that still signs, and nothing else.

use std::collections::BTreeMap;

use tagboat::git::{CommitTime, Keyring, SecretData, SigningKey, SigningKeyError, SigningKeyKind};
use tagboat::secret::Secret;

use super::PASSPHRASE;
use super::gpg_home::GpgHome;
use super::ssh_signer::SshSigner;

const NOW: CommitTime = CommitTime { seconds: 2_000_000_000, offset: 0 };

fn data(pairs: &[(&str, &[u8])]) -> BTreeMap<String, Secret> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect()
}

fn unlock(
    keyring: &Keyring,
    kind: SigningKeyKind,
    data: &BTreeMap<String, Secret>,
) -> Result<SigningKey, SigningKeyError> {
    keyring.unlock(kind, SecretData { name: "n/key", data }, NOW)
}

/// Cuts a key off at many places and turns a bit at many others.
fn assert_no_panic(kind: SigningKeyKind, name: &str, whole: &[u8]) {
    let wrecks = (0..whole.len()).step_by(1 + whole.len() / 150).flat_map(|place| {
        let mut turned = whole.to_vec();
        turned[place] ^= 1 << (place % 8);
        [whole[..place].to_vec(), turned]
    });
    for wreck in wrecks {
        match unlock(&Keyring::default(), kind, &data(&[(name, &wreck)])) {
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

/// What is stretched once is remembered while the secret stays as it is, and only then.
#[test]
fn a_key_is_unlocked_once() {
    let locked = SshSigner::new(&["-t", "ed25519", "-a", "200"], PASSPHRASE).private;
    let good = data(&[("identity", locked.as_bytes()), ("password", PASSPHRASE.as_bytes())]);
    let bad = data(&[("identity", locked.as_bytes()), ("password", b"hunter2")]);
    let keyring = Keyring::default();
    let begin = std::time::Instant::now();
    let first = unlock(&keyring, SigningKeyKind::Ssh, &good).unwrap();
    let stretched = begin.elapsed();
    let begin = std::time::Instant::now();
    for _ in 0..20 {
        unlock(&keyring.clone(), SigningKeyKind::Ssh, &good).unwrap();
    }
    assert!(
        begin.elapsed() < stretched,
        "{:?} for twenty times, {stretched:?} for the first",
        begin.elapsed()
    );
    // Another passphrase is another secret, and the one before it is known no longer.
    assert!(unlock(&keyring, SigningKeyKind::Ssh, &bad).is_err());
    let again = unlock(&keyring, SigningKeyKind::Ssh, &good).unwrap();
    assert_eq!(again.sign(b"text", NOW).unwrap(), first.sign(b"text", NOW).unwrap());
    let begin = std::time::Instant::now();
    keyring.forget("n/key");
    unlock(&keyring, SigningKeyKind::Ssh, &good).unwrap();
    assert!(begin.elapsed() > stretched / 4, "a key that was forgotten is unlocked anew");
    let shown = format!("{keyring:?}{first:?}");
    assert!(shown.contains("SHA256:") && !shown.contains("identity"), "{shown}");
}

/// The same ring gives another part of the same key at another time.
#[test]
fn time_is_looked_at_each_time() {
    let home = GpgHome::new();
    let key = home.dated_key("ed25519", "sign", "", ("20200101T000000", "20200201T000000"));
    let secret = home.secret_key(&key, "");
    let data = data(&[("git.asc", secret.as_bytes())]);
    let keyring = Keyring::default();
    let secret = SecretData { name: "n/key", data: &data };
    let at = |seconds| keyring.unlock(SigningKeyKind::OpenPgp, secret, CommitTime { seconds, offset: 0 });
    for (seconds, is_good) in
        [(1_577_836_799, false), (1_577_836_800, true), (1_580_515_199, true), (1_580_515_200, false)]
    {
        assert_eq!(at(seconds).is_ok(), is_good, "{seconds}");
    }
    let key = at(1_577_836_800).unwrap();
    let existed = |seconds| key.existed_at(CommitTime { seconds, offset: 0 });
    assert_eq!((existed(1_577_836_799), existed(1_577_836_800)), (false, true));
}
