use super::*;

/// The time of the choice in the tests.
const NOW: i64 = 1000;

fn statement(created: i64, is_for_signing: Option<bool>) -> Statement {
    Statement { created, end: None, lifetime: None, is_for_signing }
}

fn part(id: &str, created: i64, statements: &[Statement]) -> PartProperties {
    PartProperties {
        id: id.to_owned(),
        created,
        can_sign: true,
        is_known: true,
        is_secret: true,
        is_revoked: false,
        statements: statements.to_vec(),
    }
}

/// Creates a key with one user, created at 100.
fn key(is_for_signing: Option<bool>, subkeys: Vec<PartProperties>) -> KeyProperties {
    let users = vec![UserProperties { statements: vec![statement(100, is_for_signing)], revoked: None }];
    KeyProperties { primary: part("P", 100, &[]), users, subkeys }
}

fn subkey(id: &str, created: i64) -> PartProperties {
    part(id, created, &[statement(created, Some(true))])
}

#[track_caller]
fn assert_defective(key: &KeyProperties, sentence: &str) {
    assert_eq!(key.choose(NOW).unwrap_err().to_string(), sentence);
}

#[test]
fn the_newest_subkey_signs_that_may() {
    let encryption = || part("E", 900, &[statement(900, Some(false))]);
    let lifetime = |lifetime| Statement { lifetime: Some(lifetime), ..statement(500, Some(true)) };
    let rows: Vec<(&str, Vec<PartProperties>, Choice)> = vec![
        ("none", vec![], Choice::Primary),
        ("one", vec![subkey("A", 200)], Choice::Subkey(0)),
        ("the newest", vec![subkey("A", 200), subkey("B", 400), subkey("C", 300)], Choice::Subkey(1)),
        ("the first of two made at once", vec![subkey("A", 200), subkey("B", 200)], Choice::Subkey(0)),
        ("not one for encryption", vec![subkey("A", 200), encryption()], Choice::Subkey(0)),
        ("nothing but encryption", vec![encryption()], Choice::Primary),
        ("no flags", vec![part("A", 200, &[statement(200, None)])], Choice::Subkey(0)),
        (
            "no flags, and a sort that cannot",
            vec![PartProperties { can_sign: false, ..part("A", 200, &[statement(200, None)]) }],
            Choice::Primary,
        ),
        ("not yet", vec![subkey("A", 200), subkey("B", 1001)], Choice::Subkey(0)),
        (
            "revoked",
            vec![subkey("A", 200), PartProperties { is_revoked: true, ..subkey("B", 300) }],
            Choice::Subkey(0),
        ),
        ("expired", vec![subkey("A", 200), part("B", 500, &[lifetime(500)])], Choice::Subkey(0)),
        ("not yet expired", vec![subkey("A", 200), part("B", 500, &[lifetime(501)])], Choice::Subkey(1)),
        ("extended", vec![part("B", 500, &[lifetime(100), statement(600, Some(true))])], Choice::Subkey(0)),
        (
            "a stub",
            vec![subkey("A", 200), PartProperties { is_secret: false, ..subkey("B", 300) }],
            Choice::Subkey(0),
        ),
        ("unbound", vec![part("A", 200, &[])], Choice::Primary),
        (
            "bound for a time that is over",
            vec![part("A", 200, &[Statement { end: Some(1000), ..statement(200, Some(true)) }])],
            Choice::Primary,
        ),
    ];
    for (name, subkeys, expected) in rows {
        assert_eq!(key(None, subkeys).choose(NOW), Ok(expected), "{name}");
    }
}

#[test]
fn the_error_of_a_key_that_cannot_sign_names_its_signing_parts() {
    let stub = |part| PartProperties { is_secret: false, ..part };
    let revoked = |part| PartProperties { is_revoked: true, ..part };
    let dead = |id| part(id, 500, &[Statement { lifetime: Some(100), ..statement(500, Some(true)) }]);
    let encryption = || part("E", 300, &[statement(300, Some(false))]);
    assert_defective(&key(Some(false), vec![]), "key P is not for signing");
    assert_defective(
        &key(Some(false), vec![encryption()]),
        "key P is not for signing, subkey E is not for signing",
    );
    assert_defective(
        &key(Some(false), vec![encryption(), dead("A")]),
        "subkey A expired at 1970-01-01T00:10:00Z",
    );
    assert_defective(
        &key(Some(false), vec![revoked(subkey("A", 200)), subkey("B", 2000), part("C", 200, &[])]),
        "subkey A is revoked, subkey B was created at 1970-01-01T00:33:20Z, which is in the future, subkey C has no valid \
         signature that binds it to its key",
    );
    assert_defective(
        &KeyProperties {
            primary: stub(part("P", 100, &[])),
            ..key(None, vec![encryption(), stub(subkey("A", 200))])
        },
        "it does not contain the secret half of key P, it does not contain the secret half of subkey A",
    );
}

#[test]
fn everything_depends_on_the_primary_key() {
    let whole = key(None, vec![subkey("A", 200)]);
    let primary = |primary| KeyProperties { primary, ..whole.clone() };
    let users = |users| KeyProperties { users, ..whole.clone() };
    let dying = |created, lifetime| Statement { lifetime: Some(lifetime), ..statement(created, None) };
    let user =
        |statements: &[Statement], revoked| UserProperties { statements: statements.to_vec(), revoked };
    let expired = "key P expired at 1970-01-01T00:05:00Z";
    assert_defective(
        &primary(PartProperties { is_revoked: true, ..part("P", 100, &[]) }),
        "key P is revoked",
    );
    let revoked = PartProperties { is_revoked: true, ..part("P", 100, &[]) };
    assert_defective(&KeyProperties { primary: revoked, users: vec![], subkeys: vec![] }, "key P is revoked");
    assert_defective(
        &primary(part("P", 1001, &[])),
        "key P was created at 1970-01-01T00:16:41Z, which is in the future",
    );
    assert_defective(&users(vec![]), "key P has no user ID with a valid signature of its own");
    assert_defective(
        &users(vec![user(&[statement(100, None)], Some(100))]),
        "key P has no user ID with a valid signature of its own",
    );
    assert_defective(&users(vec![user(&[dying(100, 200)], None)]), expired);
    // Of two users, the newest statement on the expiry of the key counts; a revoked user has none.
    assert_defective(&users(vec![user(&[dying(150, 200)], None), user(&[dying(100, 5000)], None)]), expired);
    assert_eq!(
        users(vec![user(&[dying(150, 200)], Some(160)), user(&[dying(100, 5000)], None)]).choose(NOW),
        Ok(Choice::Subkey(0))
    );
    // Signatures on the key as a whole count more than those on its users.
    assert_defective(&primary(part("P", 100, &[dying(120, 200)])), expired);
    assert_eq!(primary(part("P", 100, &[dying(120, 5000)])).choose(NOW), Ok(Choice::Subkey(0)));
    // A newer statement renews it, and one in the future does not count.
    assert_eq!(
        users(vec![user(&[dying(100, 200), statement(300, None)], None)]).choose(NOW),
        Ok(Choice::Subkey(0))
    );
    assert_defective(&users(vec![user(&[dying(100, 200), statement(1001, None)], None)]), expired);
}
