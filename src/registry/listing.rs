//! Lists all tags of a repository, page by page.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};
use url::Url;

use super::error::RegistryError;
use super::error_response::ErrorResponse;
use super::gathered_tags::{GatheredTags, PageEnd};
use super::link::{NextPage, next_page};
use super::options::MAX_TAGS;
use super::page::{PageError, TagLimits, TagSet};
use super::repository::Repository;
use super::server::Server;
use super::session::FULL_PAGE;
use crate::net::http::Deadline;
use crate::net::http::Response;
use crate::net::http::{Client, HttpError};
use crate::net::http::{Request, WorkingMemory};
use crate::reference::TagList;
use crate::secrets::Fingerprint;
use crate::tenancy::{MemoryReservation, Permit};

/// The maximum size in bytes of one page.
/// A registry may ignore the requested page size.
const MAX_PAGE: usize = 32 * 1024 * 1024;

/// The maximum size in bytes of all tags.
const MAX_TAG_BYTES: usize = 64 * 1024 * 1024;

/// The page sizes that are requested, each if the one before is refused.
///
/// `0` leaves the size to the registry.
const PAGES: [usize; 3] = [FULL_PAGE, 100, 0];

/// The maximum number of consecutive pages without a new tag.
const MAX_PAGES_WITHOUT_NEWS: usize = 8;

/// The longest address of a next page, in bytes.
const MAX_ADDRESS: usize = 8 * 1024;

/// The maximum size in bytes of a further page without reserved memory.
const MAX_FURTHER_PAGE: usize = 256 * 1024;

/// The maximum size in bytes of a further page with memory reserved for the list.
///
/// If memory for any list is reserved, a further page may be as large as the first.
const MAX_RESERVED_FURTHER_PAGE: usize = 4 * 1024 * 1024;

/// The memory for a page.
///
/// It covers the tags of the page, all of them once more in order, and the tables of both; later, in their place, the
/// stored tags and those of the scan before.
const PAGE_MEMORY: WorkingMemory = WorkingMemory { factor: 2, base: 16 * 1024 * 1024 };

/// The size in bytes beyond which memory is reserved for a list of several pages.
const UNRESERVED: usize = 2 * 1024 * 1024;

/// The memory in bytes that is reserved then.
const LIST_MEMORY: u64 = 80 * 1024 * 1024;

/// The memory that is enough for any list of any number of pages.
const WHOLE_MEMORY: u64 = 128 * 1024 * 1024;

/// The memory of a tag in addition to its text.
const TAG_OVERHEAD: usize = 48;

/// All tags that a registry lists. Clones share the tags.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The tags.
    pub tags: TagList,
    /// The `ETag` of the list, if it has one page.
    /// An `ETag` belongs to a page, so a list of several pages has none.
    pub etag: Option<String>,
    /// The number of names in the list that are no tags.
    pub left_out: usize,
    /// The memory and slot of a large list, held until the last clone is dropped.
    held: Option<Arc<HeldCapacity>>,
}

/// The memory and the slot that a large list holds while it is processed.
#[derive(Debug)]
struct HeldCapacity {
    memory: Option<MemoryReservation>,
    _slot: Option<Permit>,
    turn: Arc<Mutex<()>>,
}

impl Listing {
    /// Waits until this clone of a large list may process it.
    ///
    /// The memory is reserved for one clone at a time.
    pub async fn turn(&self) -> Option<OwnedMutexGuard<()>> {
        Some(Arc::clone(&self.held.as_ref()?.turn).lock_owned().await)
    }

    /// Drops the tags.
    ///
    /// Returns the list's `ETag`, and the memory and the slot that are held for work on it.
    pub fn leave_tags(self) -> (Option<String>, impl Sized + Send) {
        (self.etag, self.held)
    }

    /// Returns `true` if memory is reserved for the list and for work on it.
    ///
    /// No more may be reserved then.
    pub fn is_reserved(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.memory.is_some())
    }

    /// Returns a warning about names that are no tags.
    pub fn warning(&self) -> Option<String> {
        (self.left_out > 0).then(|| left_out_warning(self.left_out))
    }
}

/// Formats a sentence about so many names that are no tags.
pub fn left_out_warning(number: usize) -> String {
    match number {
        1 => "1 invalid tag name was ignored".to_owned(),
        number => format!("{number} invalid tag names were ignored"),
    }
}

/// Tags that are in memory already.
impl From<TagList> for Listing {
    fn from(tags: TagList) -> Self {
        Self { tags, ..Self::default() }
    }
}

/// The result of listing the tags of a repository.
#[derive(Debug, Clone)]
pub enum Listed {
    /// The list is in the state that was known.
    Unchanged,
    /// The tags.
    Tags(Listing),
}

/// Options of a listing.
#[derive(Clone, Copy)]
pub struct ListOptions<'o> {
    /// The maximum number of tags.
    ///
    /// More are an error: a choice among some of the tags could be the wrong one.
    pub max_tags: usize,
    /// The `ETag` of the list that is known already.
    pub known: Option<&'o str>,
    /// Called after each page with the number of tags so far.
    pub progress: &'o (dyn Fn(usize) + Sync),
}

impl Default for ListOptions<'_> {
    fn default() -> Self {
        Self { max_tags: MAX_TAGS, known: None, progress: &|_| {} }
    }
}

/// The tags that were read so far, and the memory that they may take.
struct PartialListing<'o> {
    options: ListOptions<'o>,
    found: GatheredTags,
    /// Held from the second page on, unless memory for any list is reserved.
    slot: Option<Permit>,
    memory: Option<MemoryReservation>,
    is_complete: bool,
}

impl Repository {
    /// Lists all tags. If one page fails, the listing fails.
    ///
    /// # Errors
    ///
    /// If a response is unusable, or there are too many tags.
    pub async fn list(&self, options: ListOptions<'_>) -> Result<Listed, RegistryError> {
        let deadline = self.deadline();
        let operation = || self.listing_label();
        let listing = Box::pin(async {
            if let Some(listed) = self.list_until(options, None, &deadline).await? {
                return Ok(listed);
            }
            // No tags are held during the wait for memory.
            let memory = self.client.reserve(WHOLE_MEMORY, &deadline).await?;
            let deadline = self.client.holding_memory(&deadline);
            let listed = deadline.limit(operation, self.list_until(options, Some(memory), &deadline)).await?;
            Ok(listed.expect("any list has room in that memory"))
        });
        self.redacting_errors(deadline.limit(operation, listing)).await
    }

    /// Names the listing in messages.
    pub(super) fn listing_label(&self) -> String {
        format!("the tags of {}", self.address().canonical())
    }

    /// Lists all tags.
    /// Returns `None` if `memory` is needed and missing; if present, it is enough for any list.
    async fn list_until(
        &self,
        options: ListOptions<'_>,
        memory: Option<MemoryReservation>,
        deadline: &Deadline,
    ) -> Result<Option<Listed>, RegistryError> {
        let mut deadline = deadline.clone();
        let server = self.server(&deadline).await?;
        let page_memory = memory.is_none().then_some(PAGE_MEMORY);
        let (first, mut page) = self.first_page(&server, options.known, page_memory, &deadline).await?;
        if first.status.as_u16() == 304 {
            return Ok(Some(Listed::Unchanged));
        }
        let mut etag = first.etag().map(str::to_owned);
        let mut seen = HashSet::from([fingerprint(&page)]);
        let mut partial = PartialListing::new(options, memory);
        let mut response = first;
        let mut pages_without_news = 0;
        loop {
            // Read before the body is moved.
            let next = next_page(response.links(), &page);
            let request = response.request.clone();
            let PageEnd { entries, last, has_new } = self.add_page(&mut partial, response).await?;
            (options.progress)(partial.found.tags.tags.len());
            pages_without_news = if has_new { 0 } else { pages_without_news + 1 };
            let is_full = has_new && entries > 0 && entries == self.session.page(&server);
            let is_guess = matches!(next, NextPage::None);
            page = match next {
                NextPage::At(next) if next.as_str().len() > MAX_ADDRESS => {
                    let defect = "the address of the next page is too long".to_owned();
                    return Err(HttpError::Malformed { request, defect }.into());
                }
                NextPage::At(next)
                    if !seen.insert(fingerprint(&next)) || pages_without_news > MAX_PAGES_WITHOUT_NEWS =>
                {
                    return Err(RegistryError::PaginationLoop { request });
                }
                NextPage::At(next) => next,
                NextPage::ForeignServer(server) => {
                    return Err(RegistryError::ForeignLink { request, server });
                }
                NextPage::Unreadable => {
                    let defect = "the address of the next page of tags (Link) cannot be read".to_owned();
                    return Err(HttpError::Malformed { request, defect }.into());
                }
                // A full page may be the first of several for a registry that sends no link.
                NextPage::None if is_full => match &last {
                    Some(last) => page_after(&page, last),
                    None => {
                        let defect = "the last tag of a full page is too long to request the next page";
                        return Err(HttpError::Malformed { request, defect: defect.to_owned() }.into());
                    }
                },
                NextPage::None => break,
            };
            etag = None;
            if partial.found.left_out > options.max_tags {
                return Err(self.too_many(options));
            }
            if !partial.prepare_next_page(&self.client, &mut deadline).await? {
                return Ok(None);
            }
            let request = Request { memory: None, ..Request::get(page.clone(), partial.max_page()) };
            let further = match self.send_authenticated(&server, request, &deadline).await {
                Err(RegistryError::Http(HttpError::TooLarge { .. })) if !partial.is_complete => {
                    return Ok(None);
                }
                further => further?,
            };
            // A registry that does not know the parameter has sent all tags already.
            if is_guess && matches!(further.status.as_u16(), 400 | 404 | 405 | 416 | 422 | 501) {
                break;
            }
            response = success(further)?;
        }
        let PartialListing {
            found: GatheredTags { tags: TagSet { tags, bytes }, left_out, .. },
            memory,
            slot,
            ..
        } = partial;
        let sort = move || tags.iter().map(|tag| &**tag).collect::<TagList>();
        let tags = self.client.process(bytes, sort).await;
        let is_held = memory.is_some() || slot.is_some();
        let held = is_held.then(|| Arc::new(HeldCapacity { memory, _slot: slot, turn: Arc::default() }));
        Ok(Some(Listed::Tags(Listing { tags, etag, left_out, held })))
    }

    /// Parses a page and adds its tags.
    async fn add_page(
        &self,
        partial: &mut PartialListing<'_>,
        response: Response,
    ) -> Result<PageEnd, RegistryError> {
        let Response { request, status, body, reserved, .. } = response;
        let limits = TagLimits { tags: partial.options.max_tags, bytes: MAX_TAG_BYTES };
        let (bytes, mut found) = (body.len(), std::mem::take(&mut partial.found));
        let read = move || {
            let end = found.add_page(&body, limits);
            (found, end)
        };
        let (found, end) = self.client.process(bytes, read).await;
        partial.found = found;
        let end = end.map_err(|error| match error {
            PageError::TooManyTags => self.too_many(partial.options),
            // A list with errors is refused, even with a status of success.
            PageError::Errors(mut errors) => {
                let redactor = self.session.sent_secrets().redactor();
                for error in &mut errors {
                    error.code = redactor.redact(&error.code);
                    error.message = redactor.redact(&error.message);
                }
                let response = ErrorResponse::of(status, false, &errors);
                RegistryError::Refused { request, response, retry_after: None }
            }
            PageError::NotATagList { defect } => {
                HttpError::Malformed { request, defect: format!("it is not a list of tags ({defect})") }
                    .into()
            }
        })?;
        // The memory of the first page; further pages have none.
        if reserved.is_some() {
            partial.memory = reserved;
        }
        Ok(end)
    }

    fn too_many(&self, options: ListOptions<'_>) -> RegistryError {
        RegistryError::TooManyTags {
            repository: self.address().canonical(),
            max_tags: options.max_tags,
            bytes: MAX_TAG_BYTES,
        }
    }

    /// Requests the first page, as large as the registry allows.
    ///
    /// Returns the response and the address of the page.
    async fn first_page(
        &self,
        server: &Server,
        known: Option<&str>,
        memory: Option<WorkingMemory>,
        deadline: &Deadline,
    ) -> Result<(Response, Url), RegistryError> {
        let mut refused = None;
        for size in PAGES.into_iter().filter(|size| *size <= self.session.page(server)) {
            let mut url = self.url(server, "tags/list")?;
            if size > 0 {
                url.set_query(Some(&format!("n={size}")));
            }
            let request = Request { memory, ..Request::get(url.clone(), MAX_PAGE) }.if_none_match(known);
            let response = self.send_authenticated(server, request, deadline).await?;
            if response.status.is_client_error() && response.error_response().wants_smaller_pages() {
                refused.get_or_insert(response);
                continue;
            }
            self.session.set_page(server, size);
            let is_unchanged = known.is_some() && response.status.as_u16() == 304;
            return Ok((if is_unchanged { response } else { success(response)? }, url));
        }
        let refused = refused.expect("a page was asked for, and no answer was taken");
        Err(refused.to_error())
    }

    /// Returns the address of a resource of this repository.
    pub(super) fn url(&self, server: &Server, what: &str) -> Result<Url, RegistryError> {
        let path = format!("v2/{}/{what}", self.address().repository());
        let url = server.base.join(&path).map_err(|error| HttpError::Malformed {
            request: format!("GET {}{path}", server.base),
            defect: error.to_string(),
        });
        Ok(url?)
    }
}

impl<'o> PartialListing<'o> {
    fn new(options: ListOptions<'o>, memory: Option<MemoryReservation>) -> Self {
        let (found, is_complete) = (GatheredTags::default(), memory.is_some());
        Self { options, found, slot: None, memory, is_complete }
    }

    /// Returns the maximum size of a further page in bytes.
    fn max_page(&self) -> usize {
        match (self.is_complete, &self.memory) {
            (true, _) => MAX_PAGE,
            (false, Some(_)) => MAX_RESERVED_FURTHER_PAGE,
            (false, None) => MAX_FURTHER_PAGE,
        }
    }

    /// Prepares for a further page.
    /// Returns `false` if memory for any list must be reserved first.
    ///
    /// If memory is reserved here, the deadline becomes that of work that holds memory.
    async fn prepare_next_page(
        &mut self,
        client: &Client,
        deadline: &mut Deadline,
    ) -> Result<bool, RegistryError> {
        if self.is_complete {
            return Ok(true);
        }
        if self.slot.is_none() {
            if self.memory.is_some() {
                // The memory was for the first page alone.
                return Ok(false);
            }
            self.slot = Some(client.page_slot(deadline).await?);
        }
        let TagSet { tags, bytes } = &self.found.tags;
        if self.memory.is_none() && bytes + TAG_OVERHEAD * tags.len() > UNRESERVED {
            self.memory = Some(client.reserve(LIST_MEMORY, deadline).await?);
            *deadline = client.holding_memory(deadline);
        }
        Ok(true)
    }
}

/// Returns a successful response, or the error of any other.
pub(super) fn success(response: Response) -> Result<Response, RegistryError> {
    if response.status.is_success() { Ok(response) } else { Err(response.to_error()) }
}

/// Returns a fingerprint of a page, which is shorter than its address may be.
fn fingerprint(page: &Url) -> Fingerprint {
    Fingerprint::of([page.as_str().as_bytes()])
}

/// Returns the address of the page after a tag.
fn page_after(page: &Url, tag: &str) -> Url {
    let mut url = page.clone();
    let kept: Vec<(String, String)> =
        page.query_pairs().filter(|(name, _)| name != "last").map(|(n, v)| (n.into(), v.into())).collect();
    url.query_pairs_mut().clear().extend_pairs(kept).append_pair("last", tag);
    url
}
