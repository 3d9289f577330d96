use serde_json::json;
use tagboat_api::Reason;

use super::*;
use crate::error::ReconcileError;
use crate::policy::group::Values;
use crate::policy::selection::RankedValue;
use crate::policy::{Ages, DowngradeProtection, TagAge};
use crate::reconcile::policy::choice::tests::{at, status};
use crate::reconcile::policy::request::Request;
use crate::reconcile::policy::request::tests::policy;
use crate::reference::TagList;

fn name(text: &str) -> ObjectName {
    ObjectName { namespace: "shop".to_owned(), name: text.to_owned() }
}

/// Versions are the values: the policies have no filter.
fn compiled() -> Policy {
    Request::of(&policy(&json!({}), &json!({}))).unwrap().policy.compile().unwrap()
}

fn ranked(tags: &str) -> Vec<RankedValue> {
    let value = |tag: &str| RankedValue { value: tag.to_owned(), tag: tag.to_owned(), is_young: false };
    tags.split_whitespace().map(value).collect()
}

/// Another member: its tags from best to worst, and its image.
struct Other {
    tags: &'static str,
    current: &'static str,
    /// The scans of a downgrade that it holds.
    held_scans: Option<u32>,
}

impl Other {
    fn new(tags: &'static str, current: &'static str) -> Self {
        Self { tags, current, held_scans: None }
    }
}

/// The choice of `api` at this minute; `tags` are its own.
fn choose(
    minute: i64,
    tags: &str,
    trigger: Trigger,
    previous: &ImagePolicyStatus,
    others: &[Other],
) -> Result<Choice, ChoiceError> {
    let mut survey = Survey::new("shop".to_owned(), name("api"), Values::of(&ranked(tags)));
    for (index, Other { tags, current, held_scans }) in others.iter().enumerate() {
        let ranking = survey.values().ranking(name(&format!("other-{index}")), ranked(tags));
        let pending = held_scans.map(|scans| HeldDowngrade {
            tag: "1.3.0".to_owned(),
            since: at(0),
            scans,
            last_scan: at(minute - 1),
        });
        let (policy, current) = (Arc::new(compiled()), Some((*current).to_owned()));
        survey.add(ranking, SurveyedMember { policy, current, pending, scanned: Some(at(minute)) });
    }
    choose_by(&survey, minute, tags, trigger, previous)
}

fn choose_by(
    survey: &Survey,
    minute: i64,
    tags: &str,
    trigger: Trigger,
    previous: &ImagePolicyStatus,
) -> Result<Choice, ChoiceError> {
    let tags: TagList = tags.split_whitespace().collect();
    let inputs = SelectionInputs {
        image: "img",
        tags: &tags,
        ages: Ages { now: at(minute), age_of: &|_| TagAge::default() },
        scanned: Some(at(minute)),
        trigger,
        downgrade_protection: DowngradeProtection::default(),
        is_provisional: false,
    };
    survey.choose(&compiled(), &inputs, previous, &|| Ok(()))
}

#[test]
fn a_member_moves_to_the_best_value_that_all_have_and_else_keeps_its_image() {
    let before = status("1.2.0", None);
    for (others, tag, incomplete) in [
        (&[Other::new("1.4.0 1.3.0", "1.2.0")][..], "1.4.0", None),
        (&[Other::new("1.3.0 1.2.0", "1.2.0"), Other::new("1.4.0 1.3.0", "1.2.0")], "1.3.0", None),
        (&[Other::new("1.2.0", "1.2.0")], "1.2.0", None),
        (&[], "1.4.0", None),
        (
            &[Other::new("2.0.0", "1.2.0")],
            "1.2.0",
            Some("no value is common to all policies: shop/other-0 lacks 1.4.0"),
        ),
        (
            &[Other::new("1.3.0 1.4.0", "1.2.0")],
            "1.2.0",
            Some(
                "of the values that all policies have, 1.4.0 is the best one for shop/api and 1.3.0 for shop/other-0",
            ),
        ),
    ] {
        let choice = choose(0, "1.4.0 1.3.0 1.2.0", Trigger::TagList, &before, others).unwrap();
        let incomplete = incomplete.map(|cause| format!("the release group shop does not move: {cause}"));
        assert_eq!((choice.tag.as_str(), choice.incomplete), (tag, incomplete));
        assert_eq!(choice.held, None);
    }
}

#[test]
fn a_group_with_a_member_that_cannot_select_keeps_its_images() {
    let survey = || {
        let survey = Survey::new("shop".to_owned(), name("api"), Values::of(&ranked("1.4.0")));
        survey.stopped("ImagePolicy shop/web is suspended".to_owned())
    };
    let message = "the release group shop does not move: ImagePolicy shop/web is suspended";
    for trigger in [Trigger::TagList, Trigger::User] {
        let kept = choose_by(&survey(), 0, "1.4.0", trigger, &status("1.2.0", None)).unwrap();
        assert_eq!((kept.tag.as_str(), kept.incomplete.as_deref()), ("1.2.0", Some(message)));
    }
    let error = choose_by(&survey(), 0, "1.4.0", Trigger::User, &status("", None)).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.reason()), (message, Reason::DependencyNotReady));
    assert!(error.is_retryable() && error.is_of_group());
    let none = choose(0, "1.4.0", Trigger::User, &status("", None), &[Other::new("2.0.0", "2.0.0")]);
    assert!(none.unwrap_err().is_of_group());
    // A member without candidates has the error of its own selection.
    let error = choose(0, "latest", Trigger::TagList, &status("1.2.0", None), &[]).unwrap_err();
    assert_eq!(error.reason(), Reason::Failure);
}

#[test]
fn all_members_hold_a_lower_value_until_each_of_them_accepts_it() {
    let tags = "1.3.0 1.2.0";
    let lower = |trigger, held_scans| {
        let other = Other { held_scans, ..Other::new("1.3.0", "1.4.0") };
        choose(20, tags, trigger, &status("1.4.0", None), &[other]).unwrap()
    };
    // Its own wait begins.
    let first = lower(Trigger::TagList, Some(3));
    let scans = first.held.as_ref().and_then(|held| held.pending.as_ref()).map(|pending| pending.scans);
    assert_eq!((first.tag.as_str(), scans, first.incomplete), ("1.4.0", Some(1), None));
    // What a user wants of one member counts for all of them.
    assert_eq!(lower(Trigger::User, None).tag, "1.3.0");
    // Its own wait is over; the other one has seen one scan or enough of them.
    let pending = HeldDowngrade { tag: "1.3.0".to_owned(), since: at(0), scans: 3, last_scan: at(19) };
    let held = Held::of(pending.clone(), "1.4.0", &DowngradeProtection::default());
    let before = status("1.4.0", Some(&held));
    for (held_scans, tag) in [(Some(1), "1.4.0"), (Some(2), "1.3.0"), (Some(3), "1.3.0")] {
        let other = Other { held_scans, ..Other::new("1.3.0", "1.4.0") };
        let choice = choose(20, tags, Trigger::TagList, &before, &[other]).unwrap();
        assert_eq!(choice.tag, tag, "{held_scans:?}");
        let is_kept = tag == "1.4.0";
        assert_eq!(choice.held.and_then(|held| held.pending), is_kept.then(|| pending.clone()));
        assert_eq!(choice.incomplete.is_some(), is_kept);
    }
    // A member that is lower already does not wait, but one that would rise does.
    let other = || Other { held_scans: Some(1), ..Other::new("1.3.0", "1.4.0") };
    let there = choose(20, tags, Trigger::TagList, &status("1.3.0", None), &[other()]).unwrap();
    assert_eq!((there.tag.as_str(), there.incomplete), ("1.3.0", None));
    let rising = choose(20, tags, Trigger::TagList, &status("1.2.0", None), &[other()]).unwrap();
    assert_eq!(rising.tag, "1.2.0");
    assert_eq!(
        rising.incomplete.as_deref(),
        Some(
            "the release group shop does not move: shop/other-0 holds a downgrade (condition RegressionHeld)"
        )
    );
}
