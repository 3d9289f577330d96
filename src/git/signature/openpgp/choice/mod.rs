//! Chooses the part of a key that signs at a time, as gpg does.
//! It is the newest valid subkey, else the primary key.

use std::fmt;

use jiff::Timestamp;

use super::properties::{KeyProperties, PartProperties, Statement, UserProperties};

/// A part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Choice {
    Primary,
    /// The subkey at an index.
    Subkey(usize),
}

/// The error of a key none of whose parts can sign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct NoSigningPart {
    /// The defect of each part that matters.
    /// If all parts depend on the primary key, its defect is the only one.
    pub parts: Vec<DefectivePart>,
}

/// A part that cannot sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefectivePart {
    /// True if it is a subkey.
    pub is_subkey: bool,
    /// Its short id.
    pub id: String,
    /// The defect.
    pub defect: PartDefect,
}

/// The reason why a part of a key cannot sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartDefect {
    /// It is revoked.
    Revoked,
    /// It expired at this time, in seconds after 1970.
    Expired(i64),
    /// It is created later, at this time in seconds after 1970.
    NotYet(i64),
    /// No valid signature in the key binds it to the primary key.
    Unbound,
    /// It is for another use.
    NotForSigning,
    /// Only its public half is there.
    NotSecret,
    /// Its algorithm is not supported.
    Unknown,
}

impl fmt::Display for NoSigningPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{part}")?;
        }
        Ok(())
    }
}

impl fmt::Display for DefectivePart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_subkey, id, defect } = self;
        let part = if *is_subkey { "subkey" } else { "key" };
        match defect {
            PartDefect::Revoked => write!(formatter, "{part} {id} is revoked"),
            PartDefect::Expired(second) => write!(formatter, "{part} {id} expired at {}", Moment(*second)),
            PartDefect::NotYet(second) => {
                write!(formatter, "{part} {id} was created at {}, which is in the future", Moment(*second))
            }
            PartDefect::Unbound if *is_subkey => {
                write!(formatter, "subkey {id} has no valid signature that binds it to its key")
            }
            PartDefect::Unbound => {
                write!(formatter, "key {id} has no user ID with a valid signature of its own")
            }
            PartDefect::NotForSigning => write!(formatter, "{part} {id} is not for signing"),
            PartDefect::Unknown => write!(
                formatter,
                "{part} {id} has an unsupported algorithm (supported are RSA, DSA, ECDSA on NIST's curves and Ed25519)"
            ),
            PartDefect::NotSecret => write!(formatter, "it does not contain the secret half of {part} {id}"),
        }
    }
}

/// A point in time for messages.
struct Moment(i64);

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_second(self.0) {
            Ok(time) => write!(formatter, "{time}"),
            Err(_) => write!(formatter, "second {}", self.0),
        }
    }
}

/// The properties of a part at a time, by the statements that count.
struct Validity {
    lifetime: Option<i64>,
    is_for_signing: Option<bool>,
}

impl KeyProperties {
    /// Chooses the part that signs.
    pub(super) fn choose(&self, now: i64) -> Result<Choice, NoSigningPart> {
        let faulty = |part: &PartProperties, is_subkey, defect| DefectivePart {
            is_subkey,
            id: part.id.clone(),
            defect,
        };
        let validity = self.check_primary(now);
        let validity =
            validity.map_err(|defect| NoSigningPart { parts: vec![faulty(&self.primary, false, defect)] })?;
        let mut parts = vec![];
        let mut best: Option<(usize, i64)> = None;
        for (index, subkey) in self.subkeys.iter().enumerate() {
            let is_newer = best.is_none_or(|(_, created)| created < subkey.created);
            match subkey.check_subkey(now) {
                Ok(()) if is_newer => best = Some((index, subkey.created)),
                Ok(()) => {}
                Err(defect) => parts.push(faulty(subkey, true, defect)),
            }
        }
        if let Some((index, _)) = best {
            return Ok(Choice::Subkey(index));
        }
        match self.primary.check_use(&validity) {
            Ok(()) => return Ok(Choice::Primary),
            Err(defect) => parts.insert(0, faulty(&self.primary, false, defect)),
        }
        // A subkey for encryption is no mistake if another part was meant to sign.
        if parts.iter().any(|part| part.defect != PartDefect::NotForSigning) {
            parts.retain(|part| part.defect != PartDefect::NotForSigning);
        }
        Err(NoSigningPart { parts })
    }

    /// Checks that the primary key, on which all parts depend, is valid at a time.
    fn check_primary(&self, now: i64) -> Result<Validity, PartDefect> {
        if self.primary.is_revoked {
            return Err(PartDefect::Revoked);
        }
        self.primary.check_origin(now)?;
        let validity = self.validity(now).ok_or(PartDefect::Unbound)?;
        self.primary.check_life(&validity, now)?;
        Ok(validity)
    }

    /// Returns the validity of the primary part.
    /// Signatures on the key as a whole take precedence over those on its users, of which the newest comes first.
    fn validity(&self, now: i64) -> Option<Validity> {
        let own = newest(&self.primary.statements, now);
        let mut users: Vec<&Statement> = self.users.iter().filter_map(|user| user.newest(now)).collect();
        users.sort_by_key(|statement| std::cmp::Reverse(statement.created));
        if own.is_none() && users.is_empty() {
            return None;
        }
        let all = || own.into_iter().chain(users.iter().copied());
        Some(Validity {
            lifetime: all().find_map(|statement| statement.lifetime),
            is_for_signing: all().find_map(|statement| statement.is_for_signing),
        })
    }
}

impl UserProperties {
    fn newest(&self, now: i64) -> Option<&Statement> {
        newest(&self.statements, now)
            .filter(|statement| self.revoked.is_none_or(|revoked| revoked < statement.created))
    }
}

impl PartProperties {
    fn check_subkey(&self, now: i64) -> Result<(), PartDefect> {
        if !self.can_sign {
            return Err(PartDefect::NotForSigning);
        }
        self.check_origin(now)?;
        let &Statement { lifetime, is_for_signing, .. } =
            newest(&self.statements, now).ok_or(PartDefect::Unbound)?;
        let validity = Validity { lifetime, is_for_signing };
        self.check_use(&validity)?;
        self.check_life(&validity, now)
    }

    /// Checks that it exists at a time and has a supported algorithm.
    fn check_origin(&self, now: i64) -> Result<(), PartDefect> {
        if self.created > now {
            Err(PartDefect::NotYet(self.created))
        } else if !self.is_known {
            Err(PartDefect::Unknown)
        } else {
            Ok(())
        }
    }

    /// Checks that it has not expired at a time.
    fn check_life(&self, validity: &Validity, now: i64) -> Result<(), PartDefect> {
        let end = validity.lifetime.map(|lifetime| self.created + lifetime);
        if self.is_revoked {
            Err(PartDefect::Revoked)
        } else if let Some(end) = end.filter(|&end| end <= now) {
            Err(PartDefect::Expired(end))
        } else {
            Ok(())
        }
    }

    /// Checks that it is for signing.
    fn check_use(&self, validity: &Validity) -> Result<(), PartDefect> {
        if !self.can_sign || validity.is_for_signing == Some(false) {
            Err(PartDefect::NotForSigning)
        } else if !self.is_secret {
            Err(PartDefect::NotSecret)
        } else {
            Ok(())
        }
    }
}

/// Returns the newest statement that is valid at a time.
/// Of two made in the same second, the later one in the list counts.
fn newest(statements: &[Statement], now: i64) -> Option<&Statement> {
    let holds =
        |statement: &&Statement| statement.created <= now && statement.end.is_none_or(|end| now < end);
    statements.iter().filter(holds).max_by_key(|statement| statement.created)
}

#[cfg(test)]
mod tests;
