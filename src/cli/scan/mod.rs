//! `tagboat scan`: lists the tags of an image.

mod report;

use std::collections::BTreeMap;
use std::num::IntErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use futures::StreamExt;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::Failure;
use super::output::{OutputFormat, to_json};
use super::progress::ProgressLine;
use super::refused_login::advice_without_object;
use super::registry_login::{self, RegistryLogin};
use super::runtime;
use super::terminal::{Palette, print, say};
use super::values::{positive_duration, whole_number};
use crate::directory;
use crate::error::chain;
use crate::objects::manifests::SecretDirectory;
use crate::policy::natural_order;
use crate::reference::{RepositoryAddress, Tag};
use crate::registry::{
    CloudIdentity, CloudProvider, Credential, DockerConfig, ListOptions, Listed, Listing, LoginChoice,
    ProxyChoice, Registries, RegistryOptions, Repository, RepositoryAuth, Route, Tls,
};
use crate::secrets::Secret;
use report::{FoundTag, ScanReport};

/// The number of concurrent lookups.
const CONCURRENCY: usize = 8;

/// The keys of a Secret with certificate authorities and client certificates.
const TLS_KEYS: [&str; 6] = ["ca.crt", "caFile", "tls.crt", "certFile", "tls.key", "keyFile"];

/// List the tags of an image, with digest and age
///
/// Tags are sorted naturally, the latest first: 1.10 is later than 1.9. The digest of a multi-platform image is that of
/// its index. The age is that of the image, if it states when it was created.
///
/// Exit status: 0 done, 1 something could not be read, 2 wrong usage.
#[derive(Debug, Args)]
#[command(override_usage = "tagboat scan <IMAGE> [OPTIONS]")]
pub(super) struct ScanArguments {
    /// The image's address without tag and digest, such as ghcr.io/org/app
    #[arg(value_name = "IMAGE")]
    image: String,

    /// Show this many of the latest tags; 0 shows all
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = whole_number::<usize>,
        default_value_t = 100,
        allow_hyphen_values = true
    )]
    limit: usize,

    /// A Secret as a directory with one file per key: .dockerconfigjson or .dockercfg with logins, ca.crt, tls.crt and
    /// tls.key with certificates
    #[arg(long, value_name = "DIR")]
    secret: Option<PathBuf>,

    /// The cloud to log in to, with the identity of your environment, its files or this machine
    #[arg(long, value_name = "CLOUD", value_enum, conflicts_with = "registry_login")]
    provider: Option<Cloud>,

    /// A PEM file with certificate authorities that are trusted in addition to those of the system
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// The source of registry logins
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t = RegistryLogin::Secrets)]
    registry_login: RegistryLogin,

    /// Also use HTTP without TLS
    #[arg(long)]
    insecure: bool,

    /// The timeout of the listing, and of each lookup of an image
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = positive_duration,
        default_value = "1m",
        allow_hyphen_values = true
    )]
    timeout: Duration,

    /// The format of the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

/// A cloud that has registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cloud {
    /// ECR
    Aws,
    /// ACR
    Azure,
    /// Artifact Registry and gcr.io
    Gcp,
}

pub(super) fn run(arguments: &ScanArguments) -> Result<(), Failure> {
    let access = arguments.access()?;
    let advice = advice_without_object(arguments.secret.as_deref(), arguments.registry_login, &access.login);
    let runtime = runtime::single_threaded()?;
    let (report, errors) = runtime.block_on(scan(access, arguments.limit, advice.as_deref()))?;
    let text = match arguments.output {
        OutputFormat::Json => to_json(&report),
        OutputFormat::Text => report::render(&report, Timestamp::now(), Palette::for_output()),
    };
    let done = if errors.is_empty() { Ok(()) } else { Err(Failure::Failed(errors)) };
    Failure::after(print(&text), done)
}

impl ScanArguments {
    /// Returns the access to the registry: address, login, TLS and proxy.
    fn access(&self) -> Result<RepositoryAuth, Failure> {
        let address = self.address()?;
        let mut data = self.secret_data()?;
        if let Some(file) = &self.ca {
            let shown = file.display();
            let bytes = directory::read(file);
            let bytes = bytes.map_err(|error| Failure::Usage(format!("--ca {shown}: {error}")))?;
            let authority = ("ca.crt".to_owned(), Secret::new(bytes));
            if Tls::from_secret("", &BTreeMap::from([authority.clone()])).is_err() {
                return Err(Failure::Usage(format!("--ca {shown}: the file has no certificate in PEM form")));
            }
            data.extend([authority]);
        }
        let login = match (self.provider, self.registry_login) {
            (Some(cloud), _) => LoginChoice::Cloud(cloud.provider(), CloudIdentity::Process),
            (None, RegistryLogin::User) => of_the_user(&address)?.into(),
            (None, RegistryLogin::Secrets) => self.login(&data, &address)?.into(),
        };
        let tls = if TLS_KEYS.iter().any(|key| data.contains_key(*key)) {
            let name = self.secret.as_ref().or(self.ca.as_ref()).map(|path| path.display().to_string());
            let tls = Tls::from_secret(&name.unwrap_or_default(), &data);
            tls.map_err(|error| Failure::new(chain(&error)))?
        } else {
            Tls::default()
        };
        let route = Route { tls, proxy: ProxyChoice::Environment };
        let (namespace, referred_from, secrets) = (String::new(), None, Vec::new());
        Ok(RepositoryAuth { namespace, referred_from, address, login, route, secrets, timeout: self.timeout })
    }

    fn address(&self) -> Result<RepositoryAddress, Failure> {
        let address = RepositoryAddress::parse(&self.image, self.insecure).map_err(|error| {
            let hint = match self.image.split_once('@') {
                None => "",
                Some((before, after)) if !before.contains('/') && after.contains('/') => {
                    "; remove the user name, and log in with --secret or --registry-login"
                }
                Some(_) => "; remove the digest",
            };
            Failure::Usage(format!("{error}{hint}"))
        })?;
        let port = address.registry().rsplit_once(':').map(|(_, port)| port);
        let is_too_large =
            |port: &&str| port.parse::<u16>().is_err_and(|error| *error.kind() == IntErrorKind::PosOverflow);
        match port.filter(is_too_large) {
            Some(port) => {
                let sentence = format!("{}: the port {port} is too large; 65535 is the largest", self.image);
                Err(Failure::Usage(sentence))
            }
            None => Ok(address),
        }
    }

    fn secret_data(&self) -> Result<BTreeMap<String, Secret>, Failure> {
        let Some(directory) = &self.secret else { return Ok(BTreeMap::new()) };
        let shown = directory.display();
        let secret = SecretDirectory { namespace: None, name: String::new(), directory: directory.clone() };
        secret.read().map_err(|error| Failure::Usage(format!("--secret {shown}: {error}")))
    }

    fn login(
        &self,
        data: &BTreeMap<String, Secret>,
        address: &RepositoryAddress,
    ) -> Result<Credential, Failure> {
        let Some(directory) = &self.secret else { return Ok(Credential::Anonymous) };
        let shown = directory.display();
        let logins = DockerConfig::from_secret(data);
        let logins = logins.map_err(|error| Failure::new(format!("--secret {shown}: {error}")))?;
        let has_certificates = TLS_KEYS.iter().any(|key| data.contains_key(*key));
        match &logins {
            None if has_certificates => {}
            None => {
                return Err(Failure::Usage(format!(
                    "--secret {shown}: there is neither .dockerconfigjson nor .dockercfg, nor a certificate"
                )));
            }
            Some(logins) if matches!(logins.login(address), Credential::Anonymous) => say(&format!(
                "warning: --secret {shown} has no login for {}; the registry is accessed anonymously",
                address.canonical()
            )),
            Some(_) => {}
        }
        Ok(logins.unwrap_or_default().login(address))
    }
}

impl Cloud {
    fn provider(self) -> CloudProvider {
        match self {
            Self::Aws => CloudProvider::Aws,
            Self::Azure => CloudProvider::Azure,
            Self::Gcp => CloudProvider::Google,
        }
    }
}

/// Returns the user's own login.
fn of_the_user(address: &RepositoryAddress) -> Result<Credential, Failure> {
    let mut notes = Vec::new();
    let login = registry_login::of_the_user()?.login(address, &mut notes);
    notes.iter().for_each(|note| say(&format!("warning: {note}")));
    Ok(login)
}

/// Lists tags, and looks up digest and age of the latest ones.
async fn scan(
    access: RepositoryAuth,
    limit: usize,
    advice: Option<&str>,
) -> Result<(ScanReport, Vec<String>), Failure> {
    let registries = Registries::new(RegistryOptions::from_env());
    let failed = |error: &crate::registry::RegistryError| {
        let advice = advice.filter(|_| error.is_denied());
        Failure::new([chain(error).as_str()].into_iter().chain(advice).collect::<Vec<_>>().join("; "))
    };
    let repository = registries.repository(access.clone());
    let Listing { tags, .. } = list(&registries, access).await.map_err(|error| failed(&error))?;
    let mut shown: Vec<&str> = tags.iter().collect();
    shown.sort_by(|left, right| natural_order(right, left).then_with(|| right.cmp(left)));
    if limit > 0 && shown.len() > limit {
        say(&format!("note: {} of {} tags are shown; --limit 0 shows all", limit, tags.len()));
        shown.truncate(limit);
    }
    let mut found = Vec::with_capacity(shown.len());
    let mut errors = Vec::new();
    let mut line = ProgressLine::new();
    let mut lookups =
        futures::stream::iter(shown.iter().map(|tag| look_up(&repository, tag))).buffered(CONCURRENCY);
    while let Some((tag, error)) = lookups.next().await {
        found.push(tag);
        errors.extend(error);
        line.show_text(|| format!("{} of {} images looked up", found.len(), shown.len()));
    }
    drop(line);
    let address = repository.address();
    let report = ScanReport {
        image: address.to_string(),
        canonical: address.canonical(),
        count: tags.len(),
        revision: tags.revision(),
        tags: found,
    };
    Ok((report, errors))
}

/// Lists all tags, with a progress line, and warns of names that are not tags.
pub(super) async fn list(
    registries: &Registries,
    access: RepositoryAuth,
) -> Result<Listing, crate::registry::RegistryError> {
    let line = Mutex::new(ProgressLine::new());
    let progress = |count: usize| line.lock().show_text(|| format!("{count} tags listed"));
    let options = ListOptions { progress: &progress, ..ListOptions::default() };
    let repository = registries.repository(access);
    let listed = repository.list(options).await?;
    drop(line);
    match listed {
        Listed::Tags(listing) => {
            if let Some(warning) = listing.warning() {
                say(&format!("warning: {}: {warning}", repository.address()));
            }
            Ok(listing)
        }
        // Without an earlier list, the registry always sends one.
        Listed::Unchanged => Ok(Listing::default()),
    }
}

/// Looks up digest and age of one tag.
async fn look_up(repository: &Repository, tag: &str) -> (FoundTag, Option<String>) {
    let mut found = FoundTag { tag: tag.to_owned(), digest: None, created: None, error: None };
    let looked = match Tag::parse(tag) {
        Err(error) => Err(chain(&error)),
        Ok(tag) => repository.facts(&tag).await.map_err(|error| chain(&error)),
    };
    match looked {
        Ok(facts) => {
            found.digest = Some(facts.digest.to_string());
            found.created = facts.created;
            (found, None)
        }
        Err(error) => {
            found.error = Some(error.clone());
            (found, Some(format!("tag {tag}: {error}")))
        }
    }
}
