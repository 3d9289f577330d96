//! What to do where a registry lets nobody in: its own words are the same for a wrong login and for none.

use tagboat_api::ImageRepository;

use super::registry_login::RegistryLogin;
use crate::objects::ObjectName;
use crate::reconcile::repository::logins::Logins;
use crate::registry::{Credential, LoginChoice};

/// A part of a sentence for who asked as an ImageRepository says, with `shown`; nothing where a cloud gave the login.
pub(super) fn advice(repository: &ImageRepository, logins: &Logins, shown: &LoginChoice) -> Option<String> {
    let ObjectName { namespace, .. } = ObjectName::of(repository);
    let spec = &repository.spec;
    let secret = spec.secret_ref.as_ref().map(|secret| format!("the Secret {namespace}/{}", secret.name));
    let account = spec.service_account_name.as_ref();
    let account =
        account.map(|account| format!("the imagePullSecrets of the ServiceAccount {namespace}/{account}"));
    let named: Vec<String> = secret.into_iter().chain(account).collect();
    let (holder, remedy) = match logins {
        Logins::Given(_) => (OWN.to_owned(), LOG_IN),
        Logins::Named(_) => (
            named.join(" and "),
            "name a Secret with one in spec.secretRef of the ImageRepository, or log in as yourself with --registry-login \
             user",
        ),
    };
    words(shown, &holder, remedy)
}

/// The same for who asked with the login of a directory, or with their own.
pub(super) fn advice_without_object(
    directory: Option<&std::path::Path>,
    login: RegistryLogin,
    shown: &LoginChoice,
) -> Option<String> {
    match login {
        RegistryLogin::User => words(shown, OWN, LOG_IN),
        RegistryLogin::Secrets => {
            let holder = directory.map(|directory| format!("--secret {}", directory.display()));
            let remedy = "give one by --secret DIR, or log in as yourself with --registry-login user";
            words(shown, &holder.unwrap_or_default(), remedy)
        }
    }
}

const OWN: &str = "your config.json";

const LOG_IN: &str = "log in first, with docker login say";

fn words(shown: &LoginChoice, holder: &str, remedy: &str) -> Option<String> {
    match shown {
        LoginChoice::Cloud(..) => None,
        LoginChoice::Given(Credential::Anonymous) => {
            Some(format!("no login was given: if the registry wants one, {remedy}"))
        }
        LoginChoice::Given(_) => Some(format!(
            "a login was shown and refused: check the one in {holder}, and whether it may read this repository"
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
    use crate::secret::Secret;

    #[test]
    fn who_showed_a_login_is_told_where_it_stands_and_who_did_not_how_to() {
        let repository = |spec: serde_json::Value| -> ImageRepository {
            let mut whole = json!({"metadata": {"namespace": "n", "name": "r"}, "spec": {"image": "i", "interval": "1m"}});
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
        let nobody = LoginChoice::default();
        let login = LoginChoice::Given(Credential::Basic { user: secret("u"), password: secret("p") });
        let plain = repository(json!({}));
        let both = repository(json!({"secretRef": {"name": "s"}, "serviceAccountName": "a"}));
        for (advice, expected) in [
            (advice(&plain, &named, &nobody), "no login was given: if the registry wants one, name a Secret"),
            (advice(&plain, &own, &nobody), "no login was given: if the registry wants one, log in first"),
            (
                advice(&both, &named, &login),
                "a login was shown and refused: check the one in the Secret n/s and the imagePullSecrets of the \
                 ServiceAccount n/a, and",
            ),
            (advice(&both, &own, &login), "a login was shown and refused: check the one in your config.json"),
            (
                advice_without_object(Some(Path::new("d")), RegistryLogin::Secrets, &login),
                "a login was shown and refused: check the one in --secret d, and",
            ),
            (
                advice_without_object(None, RegistryLogin::Secrets, &nobody),
                "no login was given: if the registry wants one, give one by --secret DIR",
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
