//! Where clouds are asked.

use url::Url;

/// The end points of clouds. What is `None` follows from the registry's name; tests put servers of their own in its
/// place.
#[derive(Debug, Clone)]
pub struct CloudEndpoints {
    /// Of AWS, where roles are assumed and tokens of registries handed out.
    pub aws: Option<Url>,
    /// Where an instance of AWS asks who it is.
    pub aws_metadata: Url,
    /// Where a container of AWS asks who it is, if its environment gives a path alone.
    pub aws_containers: Url,
    /// Of Azure, where somebody logs in.
    pub azure_authority: Option<Url>,
    /// Where a machine of Azure asks who it is.
    pub azure_metadata: Url,
    /// Of Azure, where a login becomes one at a registry: the registry itself.
    pub azure_registry: Option<Url>,
    /// Where a machine of Google asks who it is.
    pub google_metadata: Url,
    /// Where Google exchanges tokens of others for its own.
    pub google_exchange: Url,
    /// Where Google lets somebody act as a service account.
    pub google_accounts: Url,
    /// Where Google gives tokens for keys and for logins of people, unless their file says otherwise.
    pub google_tokens: Url,
}

impl Default for CloudEndpoints {
    fn default() -> Self {
        let url = |text| Url::parse(text).expect("the addresses of clouds are addresses");
        Self {
            aws: None,
            aws_metadata: url("http://169.254.169.254/"),
            aws_containers: url("http://169.254.170.2/"),
            azure_authority: None,
            azure_metadata: url("http://169.254.169.254/"),
            azure_registry: None,
            google_metadata: url("http://metadata.google.internal/"),
            google_exchange: url("https://sts.googleapis.com/"),
            google_accounts: url("https://iamcredentials.googleapis.com/"),
            google_tokens: url("https://oauth2.googleapis.com/"),
        }
    }
}
