//! Parses the header `Link`, which names the next page of a listing.

use url::Url;

use crate::net::http::origin;

/// The next page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextPage {
    /// The header has no link to a next page.
    None,
    /// Its address, always at the registry itself.
    At(Url),
    /// It is on another server, of which scheme, host and port are given.
    ForeignServer(String),
    /// Its address cannot be parsed.
    Unreadable,
}

/// Finds the next page in the headers of the response for `page`.
///
/// The first link counts that has `rel=next` or no `rel`: some registries name a page without `rel`, and others send
/// further links (`prev`, `help`), which are ignored. Some registries are behind a proxy and do not know their own
/// scheme, name or port, so of an address of the same list only the query (`last`, `n`) is used.
pub fn next_page<'h>(headers: impl IntoIterator<Item = &'h str>, page: &Url) -> NextPage {
    let links = headers.into_iter().filter(|header| !header.trim().is_empty()).flat_map(links);
    let Some(link) = links.into_iter().find(Link::is_next) else { return NextPage::None };
    let next = link.target.and_then(|target| page.join(target).ok()).filter(Url::has_host);
    let Some(next) = next else { return NextPage::Unreadable };
    let mut address = page.clone();
    address.set_query(next.query());
    address.set_fragment(None);
    if next.path() == page.path() {
        return NextPage::At(address);
    }
    let is_same_server = next.origin() == page.origin() && next.username().is_empty();
    if is_same_server {
        address.set_path(next.path());
        NextPage::At(address)
    } else {
        NextPage::ForeignServer(origin(&next))
    }
}

/// One link of a header.
struct Link<'h> {
    /// The text between `<` and `>`; `None` if it is unreadable.
    target: Option<&'h str>,
    parameters: &'h str,
}

/// Splits a header into its links, which commas separate.
fn links(header: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    let mut rest = header;
    loop {
        let target = rest.split_once('<').and_then(|(_, after)| after.split_once('>'));
        let Some((target, after)) = target else {
            // An unreadable link may have been that of the next page.
            if links.is_empty() {
                links.push(Link { target: None, parameters: "" });
            }
            return links;
        };
        let end = outside_quotes(after, ',').unwrap_or(after.len());
        links.push(Link { target: Some(target), parameters: &after[..end] });
        rest = &after[end..];
    }
}

impl Link<'_> {
    fn is_next(&self) -> bool {
        let mut rest = self.parameters;
        while let Some(begin) = outside_quotes(rest, ';') {
            let parameter = &rest[begin + 1..];
            let end = outside_quotes(parameter, ';').unwrap_or(parameter.len());
            if let Some((name, value)) = parameter[..end].split_once('=')
                && name.trim().eq_ignore_ascii_case("rel")
            {
                let mut kinds = value.trim().trim_matches('"').split_ascii_whitespace();
                return kinds.any(|kind| kind.eq_ignore_ascii_case("next"));
            }
            rest = &parameter[end..];
        }
        true
    }
}

/// Returns the position of a character outside of quotes.
fn outside_quotes(text: &str, sign: char) -> Option<usize> {
    let mut is_quoted = false;
    text.char_indices().find_map(|(index, char)| {
        is_quoted ^= char == '"';
        (char == sign && !is_quoted).then_some(index)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page() -> Url {
        Url::parse("https://registry.example:8443/v2/app/web/tags/list?n=1000").unwrap()
    }

    #[test]
    fn links_on_the_same_registry_lead_to_the_next_page() {
        let at = |rest: &str| {
            NextPage::At(Url::parse(&format!("https://registry.example:8443/v2/app/web/{rest}")).unwrap())
        };
        for (header, expected) in [
            ("</v2/app/web/tags/list?last=1.0.10&n=3>; rel=\"next\"", at("tags/list?last=1.0.10&n=3")),
            ("<list?last=a>", at("tags/list?last=a")),
            ("<?last=a>;rel=next", at("tags/list?last=a")),
            ("  < /v2/app/web/tags/list?last=a >", at("tags/list?last=a")),
            ("<https://registry.example:8443/v2/app/web/tags/list?last=a#x>", at("tags/list?last=a")),
            ("<http://internal/v2/app/web/tags/list?last=a>; rel=\"next\"", at("tags/list?last=a")),
            ("<https://registry.example/v2/app/web/tags/list?last=a>", at("tags/list?last=a")),
            ("<//evil.example/v2/app/web/tags/list?last=a>", at("tags/list?last=a")),
            ("<https://u:p@registry.example:8443/v2/app/web/tags/list?last=a>", at("tags/list?last=a")),
            ("</v2/app/web/tags/more?last=a>", at("tags/more?last=a")),
            ("</v2/app/web/tags/list?last=a>, </other>; rel=\"prev\"", at("tags/list?last=a")),
            (
                "<https://docs.example/>; rel=\"help\", </v2/app/web/tags/list?last=a>; rel=next",
                at("tags/list?last=a"),
            ),
            ("<?last=b>; title=\"<x>, rel=prev;\"; REL=\"last Next\"", at("tags/list?last=b")),
            ("<?last=a,b>; rel=\"next\"", at("tags/list?last=a,b")),
            ("</v2/app/web/tags/list?n=3>; rel=\"prev\"", NextPage::None),
            ("<?n=3>; rel=first, <?n=4>; title=x; rel=last", NextPage::None),
            ("", NextPage::None),
            (" ", NextPage::None),
        ] {
            assert_eq!(next_page([header], &page()), expected, "{header}");
        }
        for header in ["x", "<x", "x>", "<http://[>", "<data:,x>"] {
            assert_eq!(next_page([header], &page()), NextPage::Unreadable, "{header}");
        }
        for header in [
            "<https://evil.example/v2/other?secret=s>",
            "<https://u:p@evil.example/s>; rel=\"next\"; title=s",
        ] {
            let server = "https://evil.example".to_owned();
            assert_eq!(next_page([header], &page()), NextPage::ForeignServer(server), "{header}");
        }
        assert_eq!(next_page([], &page()), NextPage::None);
        let several = ["<?n=3>; rel=\"first\"", "", "<?last=a>; rel=\"next\""];
        assert_eq!(next_page(several, &page()), at("tags/list?last=a"));
    }

    proptest! {
        #[test]
        fn next_pages_stay_at_the_registry(header in "<?(https?:)?/{0,3}([a-z./:@?#\\[\\]%]|\\PC){0,30}>?") {
            if let NextPage::At(next) = next_page([header.as_str()], &page()) {
                prop_assert_eq!(next.origin(), page().origin());
                prop_assert_eq!((next.username(), next.password()), ("", None));
            }
        }
    }
}
