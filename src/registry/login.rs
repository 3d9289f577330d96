//! Who we are at a registry.

use sha2::{Digest as _, Sha256};

use crate::secret::Secret;

/// What a registry, or the server that hands out its tokens, is shown.
#[derive(Debug, Clone, Default)]
pub enum Credential {
    /// Nothing.
    #[default]
    Anonymous,
    /// User and password.
    Basic {
        /// The user.
        user: Secret,
        /// The password.
        password: Secret,
    },
    /// A token that is exchanged for others, as `docker login` keeps it.
    IdentityToken(Secret),
    /// A token that the registry itself takes.
    RegistryToken(Secret),
}

/// A number that two equal secrets have and two different ones have not; it tells nothing of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

/// Prints no more than that there is one.
impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Fingerprint(…)")
    }
}

impl Fingerprint {
    /// The fingerprint of several parts in this order.
    pub fn of<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// Its bytes, to be part of another one.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Credential {
    /// Equal for equal credentials.
    pub fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Anonymous => Fingerprint::of([&b"anonymous"[..]]),
            Self::Basic { user, password } => {
                Fingerprint::of([&b"basic"[..], user.expose(), password.expose()])
            }
            Self::IdentityToken(token) => Fingerprint::of([&b"identity"[..], token.expose()]),
            Self::RegistryToken(token) => Fingerprint::of([&b"registry"[..], token.expose()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_logins_apart() {
        let basic = |user: &str, password: &str| Credential::Basic {
            user: Secret::new(user),
            password: Secret::new(password),
        };
        let logins = [
            Credential::Anonymous,
            basic("ab", "c"),
            basic("a", "bc"),
            Credential::IdentityToken(Secret::new("x")),
            Credential::RegistryToken(Secret::new("x")),
        ];
        for (index, login) in logins.iter().enumerate() {
            let same: Vec<usize> = (0..logins.len())
                .filter(|other| logins[*other].fingerprint() == login.fingerprint())
                .collect();
            assert_eq!(same, [index]);
        }
        assert!(!format!("{:?}", basic("robot", "hunter2")).contains("hunter2"));
    }
}
