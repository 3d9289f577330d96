//! Title and body of a pull request: rendered and refreshed.

use std::collections::BTreeSet;

use tagboat_api::ObjectName;
use tagboat_api::settings::TemplateLanguage;

use super::body::{joined, with_line};
use super::memory::{ImageHash, Memory, OwnerHash, TextHash};
use super::table::{code, table};
use crate::forge::{PullRequest, PullRequestEdit};
use crate::message::{MessageData, PolicyImage, PullRequestData, Template, TemplateErrorKind};

/// The maximum number of characters of a title, which all forges take.
pub const MAX_TITLE: usize = 240;

/// The title of a pull request without another one.
const UPDATE: &str = "Update images";

/// The texts of an automation from which title and body are made.
#[derive(Clone, Copy, Debug)]
pub struct TextSource<'a> {
    /// The data of the commit's message.
    pub data: &'a MessageData,
    /// `spec.update.path`, to which the names of files in the data are relative.
    pub path: Option<&'a str>,
    /// The message of the commit, if it has a template.
    pub message: Option<&'a str>,
    /// The template of the title.
    pub title: Option<&'a str>,
    /// The template of the body.
    pub body: Option<&'a str>,
    /// The language of the templates.
    pub language: TemplateLanguage,
}

/// The title of a pull request, and its body without the last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestText {
    /// The title: one line.
    pub title: String,
    /// The body.
    pub body: String,
}

/// The texts of a pull request as they are sent to a forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// The title.
    pub title: String,
    /// The body with its last line.
    pub body: String,
}

/// The content of a pull request, from which its last line is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content<'a> {
    /// The automations.
    pub(super) owners: &'a BTreeSet<OwnerHash>,
    /// The policies that it changes, with their images.
    pub(super) images: &'a BTreeSet<ImageHash>,
    /// The limit of the forge for a body.
    pub(super) limit: Option<usize>,
}

/// The error of a pull request that has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A template cannot be rendered.
    #[error("the annotation tagboat.dev/{annotation}{} cannot be rendered: {detail}", of(.automation.as_ref()))]
    Template {
        /// The name of the annotation without prefix.
        annotation: &'static str,
        /// The automation that has it, if several share the pull request.
        automation: Option<ObjectName>,
        /// The error of the template.
        detail: String,
    },
    /// The rendering was interrupted by its deadline or cancelled.
    #[error("the rendering of a template was interrupted")]
    Interrupted,
    /// The last line does not fit into a body.
    #[error(
        "the pull request changes the images of {policies} policies, for which a body of {limit} characters has no room: \
         divide them by the annotation tagboat.dev/push-branch"
    )]
    TooManyPolicies {
        /// The number of policies.
        policies: usize,
        /// The limit of the forge.
        limit: usize,
    },
}

fn of(automation: Option<&ObjectName>) -> String {
    automation.map(|automation| format!(" of automation {automation}")).unwrap_or_default()
}

impl PullRequestText {
    /// Renders the text of a pull request of one or several automations.
    ///
    /// The title is that of the first automation. The bodies follow each other; automations without a template of their own
    /// share a table.
    ///
    /// # Errors
    ///
    /// If a template cannot be rendered.
    pub fn render(
        sources: &[TextSource<'_>],
        branch: &str,
        base: &str,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, TextError> {
        let is_shared = sources.len() > 1;
        let render = |annotation: &'static str, template: &str, source: &TextSource<'_>| {
            let data = PullRequestData { message: source.data, branch, base };
            Template::compile(template, source.language)
                .and_then(|template| template.render_pull_request(&data, is_interrupted))
                .map_err(|error| match error.kind() {
                    TemplateErrorKind::Interrupted => TextError::Interrupted,
                    _ => TextError::Template {
                        annotation,
                        automation: is_shared.then(|| source.data.automation().clone()),
                        detail: error.detail_of_annotation(),
                    },
                })
        };
        let title = match sources.first() {
            Some(source @ TextSource { title: Some(template), .. }) => {
                render("pull-request-title", template, source)?
            }
            Some(TextSource { message: Some(message), .. }) => (*message).to_owned(),
            _ => String::new(),
        };
        let title = first_line(&title).unwrap_or_else(|| default_title(sources));
        let mut bodies: Vec<String> = Vec::new();
        for source in sources {
            let Some(template) = source.body else { continue };
            let body = render("pull-request-body", template, source)?.trim().to_owned();
            if !bodies.contains(&body) {
                bodies.push(body);
            }
        }
        let without: Vec<&TextSource<'_>> = sources.iter().filter(|source| source.body.is_none()).collect();
        if !without.is_empty() {
            let names: Vec<String> =
                without.iter().map(|source| code(&source.data.automation().to_string())).collect();
            let data: Vec<_> = without.iter().map(|source| (source.data, source.path)).collect();
            let automations = if names.len() == 1 { "automation" } else { "automations" };
            bodies.push(format!(
                "{}\nInto {}, by the {automations} {}.",
                table(&data),
                code(base),
                names.join(", ")
            ));
        }
        Ok(Self { title, body: bodies.join("\n\n") })
    }

    /// Removes the beginnings of the title that mark a draft.
    ///
    /// `prefixes` are those of the forge, in lower case. Only the setting makes a draft, and a title is read without its mark.
    pub fn without_draft_prefix(mut self, prefixes: &[&str]) -> Self {
        let is_marked = |title: &str| {
            let begin = |prefix: &&&str| {
                title.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
            };
            prefixes.iter().find(begin).map(|prefix| prefix.len())
        };
        while let Some(length) = is_marked(&self.title) {
            self.title = self.title[length..].trim_start().to_owned();
        }
        if self.title.is_empty() {
            UPDATE.clone_into(&mut self.title);
        }
        self
    }

    /// Returns the texts of a new pull request.
    ///
    /// `is_incomplete` is true if labels, reviewers or assignees are added later.
    pub(super) fn opened(&self, content: Content<'_>, is_incomplete: bool) -> Result<Texts, TextError> {
        let (title, owners, images) = (self.title.clone(), content.owners.clone(), content.images.clone());
        let title_hash = Some(TextHash::of(&title));
        let memory = Memory { owners, images, title: title_hash, is_incomplete, ..Memory::default() };
        let body = with_line(&self.body, memory, content.limit)?;
        Ok(Texts { title, body })
    }

    /// Returns the changes of an open pull request.
    ///
    /// Text that is still ours is replaced, and so is the last line.
    pub(super) fn refreshed(
        &self,
        current: &PullRequest,
        content: Content<'_>,
    ) -> Result<PullRequestEdit, TextError> {
        let (text, memory) = Memory::split(&current.body);
        let before = memory.unwrap_or_default();
        let is_title_ours = before.title == Some(TextHash::of(&current.title));
        let is_body_ours = before.body == Some(TextHash::of(&text));
        let title = if is_title_ours { &self.title } else { &current.title };
        let mut memory = Memory {
            owners: content.owners.clone(),
            images: content.images.clone(),
            title: if is_title_ours { Some(TextHash::of(title)) } else { before.title },
            body: before.body,
            ..Memory::default()
        };
        let body = if is_body_ours {
            memory.body = None;
            with_line(&self.body, memory, content.limit)?
        } else {
            // Text of people is never cut: without room for the line, the body stays as it is.
            joined(&text, &memory, content.limit).unwrap_or_else(|| current.body.clone())
        };
        let is_same_body = TextHash::of(&body) == TextHash::of(&current.body);
        Ok(PullRequestEdit {
            title: (TextHash::of(title) != TextHash::of(&current.title)).then(|| title.clone()),
            body: (!is_same_body).then_some(body),
            ..PullRequestEdit::default()
        })
    }
}

/// Returns the first line that has text, cut to the maximum length of a title.
fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let plain: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(match plain.char_indices().nth(MAX_TITLE) {
        None => plain,
        Some(_) => format!("{}…", plain.chars().take(MAX_TITLE - 1).collect::<String>().trim_end()),
    })
}

/// Returns `Update NAME to TAG`, or the number of images if there are several.
fn default_title(sources: &[TextSource<'_>]) -> String {
    let images: Vec<&PolicyImage> = sources.iter().flat_map(|source| source.data.images()).collect();
    let named: BTreeSet<(&str, &str)> = images
        .iter()
        .map(|image| {
            let name = image.image.name.as_str();
            (name.rsplit('/').next().unwrap_or(name), image.image.tag.as_str())
        })
        .collect();
    let title = match named.iter().next() {
        Some((name, tag)) if named.len() == 1 => format!("Update {name} to {tag}"),
        Some(_) => format!("Update {} images", named.len()),
        None => UPDATE.to_owned(),
    };
    first_line(&title).unwrap_or(title)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::memory::tests::{image, owner};
    use super::*;
    use crate::forge::PullRequestState;

    pub(in super::super) fn text(title: &str, body: &str) -> PullRequestText {
        PullRequestText { title: title.to_owned(), body: body.to_owned() }
    }

    /// An open pull request with these texts.
    pub(in super::super) fn pull_request(title: &str, body: &str) -> PullRequest {
        PullRequest {
            number: 7,
            url: "https://git.example/pulls/7".to_owned(),
            state: PullRequestState::Open,
            head: "tagboat/web".parse().unwrap(),
            head_commit: None,
            lacks_branch: false,
            base: "main".parse().unwrap(),
            title: title.to_owned(),
            body: body.to_owned(),
            is_draft: false,
            labels: Vec::new(),
            is_in_merge_queue: false,
            has_auto_merge: false,
            version: None,
        }
    }

    fn sources<'a>(
        data: &'a MessageData,
        title: Option<&'a str>,
        body: Option<&'a str>,
        message: Option<&'a str>,
    ) -> TextSource<'a> {
        TextSource { data, path: None, message, title, body, language: TemplateLanguage::Go }
    }

    fn render(source: TextSource<'_>) -> Result<PullRequestText, TextError> {
        PullRequestText::render(&[source], "tagboat/web", "main", &|| false)
    }

    #[test]
    fn titles_come_from_a_template_the_message_or_the_images() {
        let data = MessageData::plain_sample();
        let many = data.images().len();
        assert!(many > 1);
        let long = "x".repeat(300);
        for (title, message, expected) in [
            (Some("{{ .Branch }} -> {{ .Base }}\nmore"), Some("a message"), "tagboat/web -> main".to_owned()),
            (Some("\n  \n by {{ .AutomationObject.Name }}"), None, format!("by {}", data.automation().name)),
            (Some("{{ .Values.none }}"), None, "<no value>".to_owned()),
            (Some("{{ \"\" }} "), None, format!("Update {many} images")),
            (None, Some("chore: update\n\nbody"), "chore: update".to_owned()),
            (None, None, format!("Update {many} images")),
            (Some(&long), None, format!("{}…", "x".repeat(239))),
        ] {
            let found = render(sources(&data, title, None, message)).unwrap().title;
            assert_eq!(found, expected, "{title:?} {message:?}");
        }
        let preset = render(sources(&data, Some("preset:summary"), Some("preset:detailed"), None)).unwrap();
        assert!(!preset.title.contains('\n') && preset.body.lines().count() > 3, "{preset:?}");
        for (template, start) in [
            (
                "{{ .Nope }}",
                "the annotation tagboat.dev/pull-request-title cannot be rendered: template:1:3: <.Nope>: can't evaluate",
            ),
            (
                "{{",
                "the annotation tagboat.dev/pull-request-title cannot be rendered: template:1: unclosed action",
            ),
            (
                "preset:nope",
                "the annotation tagboat.dev/pull-request-title cannot be rendered: there is no preset",
            ),
        ] {
            let error = render(sources(&data, Some(template), None, None)).unwrap_err().to_string();
            assert!(error.starts_with(start), "{error}");
        }
    }

    /// The pull request was a draft, and later titles were never written.
    #[test]
    fn a_title_that_begins_like_a_draft_loses_that_beginning() {
        const PREFIXES: [&str; 2] = ["wip:", "[wip]"];
        for (title, prefixes, expected) in [
            ("WIP: Update web", PREFIXES.as_slice(), "Update web"),
            ("[wip]wip:  Update", &PREFIXES, "Update"),
            ("Draft: Update", &PREFIXES, "Draft: Update"),
            ("WIP: Update", &[], "WIP: Update"),
            ("é", &PREFIXES, "é"),
            ("Wip:", &PREFIXES, "Update images"),
        ] {
            let found = text(title, "body").without_draft_prefix(prefixes);
            assert_eq!(found.title, expected, "{title}");
        }
        let (owners, images) = (BTreeSet::from([owner("fleet")]), BTreeSet::from([image("web", "1")]));
        let content = Content { owners: &owners, images: &images, limit: None };
        let opened = text("WIP: 1", "body").without_draft_prefix(&PREFIXES).opened(content, false).unwrap();
        let next = text("WIP: 2", "body").without_draft_prefix(&PREFIXES);
        let edit = next.refreshed(&pull_request(&opened.title, &opened.body), content).unwrap();
        assert_eq!(edit.title.as_deref(), Some("2"));
    }

    #[test]
    fn bodies_come_from_a_template_or_are_a_table() {
        let data = MessageData::plain_sample();
        let body = render(sources(&data, None, None, None)).unwrap().body;
        assert!(body.starts_with("| policy | from | to | files |\n|---|"), "{body}");
        let end = format!("\n\nInto `main`, by the automation `{}`.", data.automation());
        assert!(body.ends_with(&end), "{body}");
        let templated = sources(&data, None, Some("from {{ .Branch }}\n"), None);
        assert_eq!(render(templated).unwrap().body, "from tagboat/web");
        // Automations that share a pull request.
        let plain = sources(&data, None, None, None);
        let all =
            PullRequestText::render(&[templated, templated, plain, plain], "tagboat/web", "main", &|| false);
        let all = all.unwrap().body;
        assert!(all.starts_with("from tagboat/web\n\n| policy |"), "{all}");
        assert_eq!(all.matches("from tagboat/web").count(), 1, "{all}");
        assert!(all.contains("by the automations `"), "{all}");
        let interrupted = PullRequestText::render(&[templated], "a", "b", &|| true);
        assert_eq!(interrupted, Err(TextError::Interrupted));
    }

    #[test]
    fn text_that_people_edited_stays() {
        let (owners, old, new) = (
            BTreeSet::from([owner("fleet")]),
            BTreeSet::from([image("web", "1")]),
            BTreeSet::from([image("web", "2")]),
        );
        let content = |images| Content { owners: &owners, images, limit: None };
        let opened = text("Update web to 1", "first\n\nwords").opened(content(&old), false).unwrap();
        assert!(opened.body.starts_with("first\n\nwords\n\n[//]: # (tagboat 1 "), "{opened:?}");
        let next = text("Update web to 2", "second");
        let (title, body) = (opened.title.as_str(), opened.body.as_str());
        let windows = body.replace('\n', "\r\n");
        let edited = body.replace("words", "words, read by ann");
        let below = format!("{body}\n\nread by ann");
        let stripped = "first".to_owned();
        for (title, body, expected_title, expected_text) in [
            (title, body, "Update web to 2", "second"),
            (title, windows.as_str(), "Update web to 2", "second"),
            (title, edited.as_str(), "Update web to 2", "first\n\nwords, read by ann"),
            ("by ann", body, "by ann", "second"),
            ("by ann", edited.as_str(), "by ann", "first\n\nwords, read by ann"),
            (title, below.as_str(), "Update web to 2", "first\n\nwords\n\n\nread by ann"),
            // Without the line, all text counts as that of people: a pull request that is adopted.
            (title, stripped.as_str(), title, "first"),
        ] {
            let current = pull_request(title, body);
            let edit = next.refreshed(&current, content(&new)).unwrap();
            let found = edit.title.as_deref().unwrap_or(title);
            let (text, memory) = Memory::split(edit.body.as_ref().unwrap());
            assert_eq!((found, text.as_str()), (expected_title, expected_text), "{title} {body}");
            let memory = memory.unwrap();
            assert_eq!((&memory.owners, &memory.images), (&owners, &new), "{title} {body}");
            // Another look changes nothing.
            let current = pull_request(found, edit.body.as_ref().unwrap());
            assert_eq!(next.refreshed(&current, content(&new)).unwrap(), PullRequestEdit::default());
            // Edited text stays in the next refresh too.
            let third = text_of_third().refreshed(&current, content(&old)).unwrap();
            assert_eq!(third.title.is_some(), expected_title == "Update web to 2", "{title} {body}");
            assert_eq!(
                Memory::split(third.body.as_ref().unwrap()).0 == "third",
                expected_text == "second",
                "{title} {body}"
            );
        }
    }

    fn text_of_third() -> PullRequestText {
        text("Update web to 3", "third")
    }
}
