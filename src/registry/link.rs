//! Where the next page of a listing is: the header `Link`.

use url::Url;

/// What a registry says of the next page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextPage {
    /// There is none.
    None,
    /// Its address; always at the registry itself.
    At(Url),
    /// There is one, but we will not go there.
    Elsewhere(String),
}

/// Reads the headers of an answer that was got from `page`.
///
/// The address counts that stands between the first `<` and the next `>`, whatever its `rel`, as with Flux. Some
/// registries stand behind a proxy and do not know the scheme, name or port that they are reached by, so of an address
/// that names the same list only the question (`last`, `n`) is taken.
pub fn next_page<'h>(headers: impl IntoIterator<Item = &'h str>, page: &Url) -> NextPage {
    let Some(header) = headers.into_iter().find(|header| !header.trim().is_empty()) else {
        return NextPage::None;
    };
    let elsewhere = || NextPage::Elsewhere(header.to_owned());
    let target = header.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    let Some(next) = target.and_then(|(target, _)| page.join(target).ok()) else { return elsewhere() };
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
        elsewhere()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page() -> Url {
        Url::parse("https://registry.example:8443/v2/app/web/tags/list?n=1000").unwrap()
    }

    #[test]
    fn the_next_page_is_at_the_registry_itself() {
        let at = |rest: &str| {
            NextPage::At(Url::parse(&format!("https://registry.example:8443/v2/app/web/{rest}")).unwrap())
        };
        for (header, wanted) in [
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
            ("", NextPage::None),
            (" ", NextPage::None),
        ] {
            assert_eq!(next_page([header], &page()), wanted, "{header}");
        }
        for header in
            ["x", "<x", "x>", "<https://evil.example/v2/other/tags/list?last=a>", "<http://[>", "<data:,x>"]
        {
            assert_eq!(next_page([header], &page()), NextPage::Elsewhere(header.to_owned()), "{header}");
        }
        assert_eq!(next_page([], &page()), NextPage::None);
    }

    proptest! {
        #[test]
        fn no_header_leads_away(header in "<?(https?:)?/{0,3}([a-z./:@?#\\[\\]%]|\\PC){0,30}>?") {
            if let NextPage::At(next) = next_page([header.as_str()], &page()) {
                prop_assert_eq!(next.origin(), page().origin());
                prop_assert_eq!((next.username(), next.password()), ("", None));
            }
        }
    }
}
