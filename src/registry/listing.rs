//! All tags of a repository, page after page.

use std::collections::HashSet;

use serde::Deserialize;
use url::Url;

use super::answer::Answer;
use super::call::Call;
use super::deadline::Deadline;
use super::error::RegistryError;
use super::link::{NextPage, next_page};
use super::repository::Repository;
use super::server::{FULL_PAGE, Server};
use crate::reference::TagList;

/// How much is read of one page. A registry may put all tags on it, whatever it is asked for.
const LARGEST_PAGE: usize = 32 * 1024 * 1024;

/// How many tags are taken, unless somebody wants it otherwise.
pub(super) const MOST_TAGS: usize = 250_000;

/// How many bytes of tags are taken.
const LARGEST: usize = 64 * 1024 * 1024;

/// The sizes of pages that are asked for, one after the other where a larger one is refused; `0` leaves it to the
/// registry.
const PAGES: [usize; 3] = [FULL_PAGE, 100, 0];

/// How many pages may follow one another that bring nothing new.
const BARREN_PAGES: usize = 8;

/// Every tag that a registry lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The tags.
    pub tags: TagList,
    /// How the registry calls this state of the list; only where the list has one page, for it speaks of a page.
    pub etag: Option<String>,
}

/// What a look at the tags of a repository found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// Nothing has changed since the state that was known.
    Unchanged,
    /// The tags.
    Tags(Listing),
}

/// How tags are listed.
#[derive(Clone, Copy)]
pub struct ListOptions<'o> {
    /// How many tags are taken; more are an error, for a choice among some of them could be the wrong one.
    pub most: usize,
    /// The state of the list that is known already.
    pub known: Option<&'o str>,
    /// Is told after each page how many tags there are so far.
    pub progress: &'o (dyn Fn(usize) + Sync),
}

impl Default for ListOptions<'_> {
    fn default() -> Self {
        Self { most: MOST_TAGS, known: None, progress: &|_| {} }
    }
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default)]
    errors: Option<serde_json::Value>,
}

/// The tags that were read so far.
struct Gathered<'o> {
    options: ListOptions<'o>,
    tags: HashSet<String>,
    bytes: usize,
}

impl Repository {
    /// Lists all tags. A listing that fails on any page has failed.
    ///
    /// # Errors
    ///
    /// When the registry does not answer as it should, or there are too many tags.
    pub async fn list(&self, options: ListOptions<'_>) -> Result<Listed, RegistryError> {
        let deadline = self.deadline();
        let what = || self.tags_in_words();
        let listing = Box::pin(self.list_until(options, &deadline));
        self.discreetly(deadline.hold(what, listing)).await
    }

    /// What a listing is for, in messages.
    pub(super) fn tags_in_words(&self) -> String {
        format!("the tags of {}", self.address().canonical())
    }

    async fn list_until(
        &self,
        options: ListOptions<'_>,
        deadline: &Deadline,
    ) -> Result<Listed, RegistryError> {
        let server = self.server(deadline).await?;
        let (first, mut page) = self.first_page(&server, options.known, deadline).await?;
        if first.status.as_u16() == 304 {
            return Ok(Listed::Unchanged);
        }
        let mut etag = first.etag().map(str::to_owned);
        let mut seen = HashSet::from([page.clone()]);
        let mut gathered = Gathered { options, tags: HashSet::new(), bytes: 0 };
        let mut answer = first;
        let mut barren = 0;
        loop {
            let tags = read(&answer)?;
            let (number, last) = (tags.len(), tags.last().cloned());
            let is_news = gathered.add(tags).ok_or_else(|| RegistryError::TooManyTags {
                repository: self.address().canonical(),
                most: options.most,
                bytes: LARGEST,
            })?;
            (options.progress)(gathered.tags.len());
            barren = if is_news { 0 } else { barren + 1 };
            page = match next_page(answer.links(), &page) {
                NextPage::At(next) if !seen.insert(next.clone()) || barren > BARREN_PAGES => {
                    return Err(RegistryError::Circle { request: answer.request });
                }
                NextPage::At(next) => next,
                NextPage::Elsewhere(link) => {
                    return Err(RegistryError::Elsewhere { request: answer.request, link });
                }
                // A full page may have been the first of several for a registry that does not say so.
                NextPage::None => match last {
                    Some(last) if is_news && number > 0 && number == server.page() => {
                        etag = None;
                        let next = behind(&page, &last);
                        let asked =
                            self.ask(&server, Call::get(next.clone(), LARGEST_PAGE), deadline).await?;
                        // A registry that does not understand the question has given all it has.
                        if matches!(asked.status.as_u16(), 400 | 404 | 405 | 416 | 422 | 501) {
                            break;
                        }
                        answer = success(asked)?;
                        page = next;
                        continue;
                    }
                    _ => break,
                },
            };
            etag = None;
            answer = success(self.ask(&server, Call::get(page.clone(), LARGEST_PAGE), deadline).await?)?;
        }
        Ok(Listed::Tags(Listing { tags: gathered.tags.into_iter().collect(), etag }))
    }

    /// The first page, as large as the registry gives it, and its address.
    async fn first_page(
        &self,
        server: &Server,
        known: Option<&str>,
        deadline: &Deadline,
    ) -> Result<(Answer, Url), RegistryError> {
        let mut refused = None;
        for size in PAGES.into_iter().filter(|size| *size <= server.page()) {
            let mut url = self.url(server, "tags/list")?;
            if size > 0 {
                url.set_query(Some(&format!("n={size}")));
            }
            let call = Call::get(url.clone(), LARGEST_PAGE).unless(known);
            let answer = self.ask(server, call, deadline).await?;
            if answer.status.is_client_error() && answer.refusal().wants_smaller_pages() {
                refused.get_or_insert(answer);
                continue;
            }
            server.set_page(size);
            let is_unchanged = known.is_some() && answer.status.as_u16() == 304;
            return Ok((if is_unchanged { answer } else { success(answer)? }, url));
        }
        let refused = refused.expect("a page was asked for, and no answer was taken");
        Err(refused.to_error())
    }

    /// The address of something of this repository.
    pub(super) fn url(&self, server: &Server, what: &str) -> Result<Url, RegistryError> {
        let path = format!("v2/{}/{what}", self.address().repository());
        server.base.join(&path).map_err(|error| RegistryError::Malformed {
            request: format!("GET {}{path}", server.base),
            flaw: error.to_string(),
        })
    }
}

impl Gathered<'_> {
    /// Adds the tags of a page and says whether one was new; `None` when there are too many.
    fn add(&mut self, tags: Vec<String>) -> Option<bool> {
        let before = self.tags.len();
        for tag in tags {
            let size = tag.len();
            if self.tags.insert(tag) {
                self.bytes += size;
            }
            if self.tags.len() > self.options.most || self.bytes > LARGEST {
                return None;
            }
        }
        Some(self.tags.len() > before)
    }
}

/// An answer that is good, or the error that it stands for.
pub(super) fn success(answer: Answer) -> Result<Answer, RegistryError> {
    if answer.status.is_success() { Ok(answer) } else { Err(answer.to_error()) }
}

fn read(answer: &Answer) -> Result<Vec<String>, RegistryError> {
    let page: Page =
        answer.object().map_err(|error| answer.malformed(format!("it is no list of tags ({error})")))?;
    // A list that says what went wrong is none, whatever its status.
    let is_refusal = page.errors.is_some_and(|errors| errors.as_array().is_none_or(|list| !list.is_empty()));
    if is_refusal && page.tags.as_ref().is_none_or(Vec::is_empty) {
        Err(answer.to_error())
    } else {
        Ok(page.tags.unwrap_or_default())
    }
}

/// The address of what comes after a tag.
fn behind(page: &Url, tag: &str) -> Url {
    let mut url = page.clone();
    let kept: Vec<(String, String)> =
        page.query_pairs().filter(|(name, _)| name != "last").map(|(n, v)| (n.into(), v.into())).collect();
    url.query_pairs_mut().clear().extend_pairs(kept).append_pair("last", tag);
    url
}
