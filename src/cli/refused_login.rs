//! Advice for a login that a registry refused.
//!
//! The message of the registry is the same for a wrong login and for none.

use tagboat_api::ImageRepository;

use super::registry_login::{RegistryLogin, of_the_user};
use crate::objects::ObjectName;
use crate::reconcile::repository::logins::{GivenLogins, Logins};
use crate::reference::RepositoryAddress;
use crate::registry::{Credential, LoginChoice};

/// Returns advice for a request with the login of an ImageRepository.
///
/// There is none for a login of a cloud.
pub(super) fn advice(repository: &ImageRepository, logins: &Logins, sent: &LoginChoice) -> Option<String> {
    let ObjectName { namespace, .. } = ObjectName::of(repository);
    let spec = &repository.spec;
    let secret = spec.secret_ref.as_ref().map(|secret| format!("the Secret {namespace}/{}", secret.name));
    let account = spec.service_account_name.as_ref();
    let account =
        account.map(|account| format!("the imagePullSecrets of the ServiceAccount {namespace}/{account}"));
    let named: Vec<String> = secret.into_iter().chain(account).collect();
    let (holder, remedy) = match logins {
        Logins::Given(own) => (OWN.to_owned(), log_in(own)),
        Logins::Named(_) if named.is_empty() => (
            String::new(),
            "name a Secret with one in spec.secretRef of the ImageRepository, or log in as yourself with --registry-login \
             user"
                .to_owned(),
        ),
        Logins::Named(_) => {
            let holder = named.join(" and ");
            let host = RepositoryAddress::parse(&spec.image, spec.insecure);
            let host = host.map_or_else(|_| spec.image.clone(), |address| address.registry().to_owned());
            let verb = if named.len() == 1 { "has" } else { "have" };
            let remedy = format!(
                "{holder} {verb} none for {host}: add it there, or log in as yourself with --registry-login user"
            );
            (holder, remedy)
        }
    };
    sentence(sent, &holder, &remedy)
}

/// Returns advice for a request with the login of a directory or of the user.
pub(super) fn advice_without_object(
    directory: Option<&std::path::Path>,
    login: RegistryLogin,
    sent: &LoginChoice,
) -> Option<String> {
    match login {
        RegistryLogin::User => {
            let own = of_the_user().as_ref().map_or_else(|_| LOG_IN.to_owned(), log_in);
            sentence(sent, OWN, &own)
        }
        RegistryLogin::Secrets => {
            let holder = directory.map(|directory| format!("--secret {}", directory.display()));
            let first = match &holder {
                Some(holder) => format!("{holder} has none for this registry: add it there"),
                None => "give one with --secret DIR".to_owned(),
            };
            let remedy = format!("{first}, or log in as yourself with --registry-login user");
            sentence(sent, &holder.unwrap_or_default(), &remedy)
        }
    }
}

const OWN: &str = "your config.json";

const LOG_IN: &str = "log in first, for example with docker login";

/// Returns advice for the user's own login.
///
/// If a credential helper is configured, docker and podman store the login there.
fn log_in(own: &GivenLogins) -> String {
    if own.remark.is_empty() {
        return LOG_IN.to_owned();
    }
    let origin = &own.origin;
    format!(
        "docker login stores it in a credential helper, which tagboat does not run, so write it into `auths` of \
         {origin}, or of another config.json whose directory is in DOCKER_CONFIG, or use a Secret with --registry-login secrets"
    )
}

fn sentence(sent: &LoginChoice, holder: &str, remedy: &str) -> Option<String> {
    match sent {
        LoginChoice::Cloud(..) => None,
        LoginChoice::Given(Credential::Anonymous) => {
            Some(format!("no login was sent: if the registry requires one, {remedy}"))
        }
        LoginChoice::Given(_) => Some(format!(
            "a login was sent and refused: check the one in {holder}, and whether it may read this repository"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::reconcile::repository::logins::GivenLogins;
    use crate::registry::{CloudIdentity, CloudProvider, DockerConfig};
    use crate::secrets::Secret;

    #[test]
    fn advice_names_the_place_of_a_login_or_the_way_to_one() {
        let repository = |spec: serde_json::Value| -> ImageRepository {
            let mut whole = json!({"metadata": {"namespace": "n", "name": "r"}, "spec": {"image": "r.io/app", "interval": "1m"}});
            whole["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
            serde_json::from_value(whole).unwrap()
        };
        let secret = |text: &str| Secret::new(text.as_bytes().to_vec());
        let named = Logins::default();
        let config = DockerConfig::from_json(b"{}").unwrap();
        let own = Logins::Given(GivenLogins {
            logins: config,
            origin: "config.json".to_owned(),
            remark: String::new(),
        });
        let keeper = Logins::Given(GivenLogins {
            logins: DockerConfig::from_json(b"{}").unwrap(),
            origin: "/me/config.json".to_owned(),
            remark: "; it names programs".to_owned(),
        });
        let none = LoginChoice::default();
        let login = LoginChoice::Given(Credential::Basic { user: secret("u"), password: secret("p") });
        let plain = repository(json!({}));
        let both = repository(json!({"secretRef": {"name": "s"}, "serviceAccountName": "a"}));
        for (advice, expected) in [
            (advice(&plain, &named, &none), "no login was sent: if the registry requires one, name a Secret"),
            (advice(&plain, &own, &none), "no login was sent: if the registry requires one, log in first"),
            (
                advice(&plain, &keeper, &none),
                "no login was sent: if the registry requires one, docker login stores it in a credential helper, \
                 which tagboat does not run, so write it into `auths` of /me/config.json, or",
            ),
            (
                advice(&repository(json!({"secretRef": {"name": "s"}})), &named, &none),
                "no login was sent: if the registry requires one, the Secret n/s has none for r.io: add it there, or",
            ),
            (
                advice(&both, &named, &none),
                "no login was sent: if the registry requires one, the Secret n/s and the imagePullSecrets of the \
                 ServiceAccount n/a have none for r.io: add it there, or",
            ),
            (
                advice(&both, &named, &login),
                "a login was sent and refused: check the one in the Secret n/s and the imagePullSecrets of the \
                 ServiceAccount n/a, and",
            ),
            (advice(&both, &own, &login), "a login was sent and refused: check the one in your config.json"),
            (
                advice_without_object(Some(Path::new("d")), RegistryLogin::Secrets, &login),
                "a login was sent and refused: check the one in --secret d, and",
            ),
            (
                advice_without_object(Some(Path::new("d")), RegistryLogin::Secrets, &none),
                "no login was sent: if the registry requires one, --secret d has none for this registry: add it there, or",
            ),
            (
                advice_without_object(None, RegistryLogin::Secrets, &none),
                "no login was sent: if the registry requires one, give one with --secret DIR",
            ),
        ] {
            let advice = advice.unwrap();
            assert!(advice.starts_with(expected), "{advice}");
        }
        assert_eq!(
            advice(&both, &named, &LoginChoice::Cloud(CloudProvider::Aws, CloudIdentity::Process)),
            None
        );
    }
}
