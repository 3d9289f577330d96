//! Credentials for registries.

use crate::secrets::{Fingerprint, Secret};

/// A credential for a registry or its token server.
#[derive(Debug, Clone, Default)]
pub enum Credential {
    /// No credential.
    #[default]
    Anonymous,
    /// User and password.
    Basic {
        /// The user.
        user: Secret,
        /// The password.
        password: Secret,
    },
    /// A token that is exchanged for others, as `docker login` stores it.
    IdentityToken(Secret),
    /// A token that the registry itself accepts.
    RegistryToken(Secret),
}

impl Credential {
    /// Returns a fingerprint that is equal for equal credentials.
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
    fn different_logins_have_different_fingerprints() {
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
