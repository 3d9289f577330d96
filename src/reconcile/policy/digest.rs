//! The digest of the tag that counts, and whether its manifest is there at all (`docs/flux-behaviour.md`, Policies).
//!
//! A winner that is new is announced only after a look at its manifest, for some registries list a tag before it can be
//! pulled. The digest of a tag that is followed comes from the poller, and a registry that does not answer takes nothing
//! away from what is known.

use tagboat_api::policy::{DigestReflectionPolicy, ImagePolicyStatus};
use tagboat_api::{ImageRef, Reason};

use super::choice::is_same_tag;
use crate::policy::downgrade::Trigger;
use crate::reconcile::course::Ending;
use crate::reconcile::lookup::{LookFailure, LookFailureKind, Staleness};

/// What is known of the digest of a tag before anybody is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The image as its repository names it.
    pub image: &'a str,
    /// The tag that counts.
    pub tag: &'a str,
    /// Whether the digest is reported.
    pub digests: &'a DigestReflectionPolicy,
    /// What brought about this run.
    pub trigger: Trigger,
    /// What the poller knows of just this tag, where it follows it.
    pub polled: Option<&'a Polled>,
    /// Whether and how the tag is followed.
    pub following: Following,
    /// What becomes of a winner that takes no other's place.
    pub first: FirstImage,
}

/// Whether the manifest of a winner is looked at that takes no other's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstImage {
    /// It counts, as with Flux: a policy without an image would not be served better.
    Counts,
    /// It is looked at like any other: what knows nothing from before may be about to overwrite what works.
    LookedAt,
}

/// Whether and how the digest of a tag is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    /// By itself.
    Alone,
    /// With those of other policies, so nothing counts before all are known.
    InGroup,
    /// Not at all: the process asks no registry for digests of tags that float.
    Disabled,
}

/// What the poller knows of a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// The last digest that the registry said.
    pub digest: Option<String>,
    /// Why it does not say one any more.
    pub staleness: Option<Staleness>,
}

/// What is to be done about a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: this one counts, or none.
    Settled(Option<String>),
    /// The registry is to be asked.
    Look {
        /// Whether the digest is wanted, or only that the manifest is there.
        wants_digest: bool,
    },
    /// The other policies of the group are to be waited for.
    AwaitGroup,
}

/// What is reported of the tag that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The image.
    pub latest: ImageRef,
    /// Why it may be out of date.
    pub staleness: Option<Staleness>,
    /// Whether the run is to be made again soon.
    pub is_retried: bool,
}

/// Why nothing can be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// How the run ends.
    pub ending: Ending,
    /// What the condition `Stale` says.
    pub staleness: Staleness,
}

impl Question<'_> {
    /// What is to be done about the digest, where the status before is `previous`.
    pub fn need(&self, previous: &ImagePolicyStatus) -> Need {
        let latest = previous.latest_ref.as_ref();
        let is_same = is_same_tag(latest, self.image, self.tag);
        let known = latest.filter(|_| is_same).and_then(ImageRef::digest).map(str::to_owned);
        let polled = self.polled.and_then(|polled| polled.digest.clone());
        match self.digests {
            DigestReflectionPolicy::Always if self.following == Following::Disabled => Need::Settled(known),
            DigestReflectionPolicy::Always if self.following == Following::InGroup => {
                match polled.or(known) {
                    Some(digest) => Need::Settled(Some(digest)),
                    None => Need::AwaitGroup,
                }
            }
            DigestReflectionPolicy::Always => match (known, polled) {
                (Some(_), _) if self.trigger == Trigger::User => Need::Look { wants_digest: true },
                (_, Some(polled)) => Need::Settled(Some(polled)),
                (Some(known), None) => Need::Settled(Some(known)),
                (None, None) => Need::Look { wants_digest: true },
            },
            DigestReflectionPolicy::IfNotPresent => match known {
                Some(known) => Need::Settled(Some(known)),
                None => Need::Look { wants_digest: true },
            },
            _ if is_same => Need::Settled(None),
            // Where nothing is reported yet, a manifest that is missing would keep nothing.
            _ if latest.is_none() && self.first == FirstImage::Counts => Need::Settled(None),
            _ => Need::Look { wants_digest: false },
        }
    }

    /// What is reported where the registry need not be asked.
    pub fn settled(&self, digest: Option<String>) -> Resolution {
        let staleness = self.polled.and_then(|polled| polled.staleness.clone());
        let is_followed = *self.digests == DigestReflectionPolicy::Always;
        Resolution {
            latest: self.image_ref(digest),
            staleness: staleness.filter(|_| is_followed),
            is_retried: false,
        }
    }

    /// What is reported while the other policies of the group are waited for.
    ///
    /// # Errors
    ///
    /// When nothing was reported before.
    pub fn awaiting(&self, previous: &ImagePolicyStatus) -> Result<Resolution, Unresolved> {
        let staleness =
            self.polled.and_then(|polled| polled.staleness.clone()).unwrap_or_else(|| Staleness {
                reason: Reason::GroupIncomplete,
                message: "the digests of the group are not all known yet".to_owned(),
            });
        match &previous.latest_ref {
            Some(latest) => {
                Ok(Resolution { latest: latest.clone(), staleness: Some(staleness), is_retried: false })
            }
            None => Err(Unresolved {
                ending: Ending::Failure(Reason::DependencyNotReady, staleness.message.clone()),
                staleness,
            }),
        }
    }

    /// What is reported after a look at the manifest.
    ///
    /// # Errors
    ///
    /// When the digest is wanted and nobody says it, or when there is no manifest and no earlier image.
    pub fn looked(
        &self,
        wants_digest: bool,
        answer: Result<String, LookFailure>,
        previous: &ImagePolicyStatus,
    ) -> Result<Resolution, Unresolved> {
        let failure = match answer {
            Ok(digest) => {
                let latest = self.image_ref(Some(digest).filter(|_| wants_digest));
                return Ok(Resolution { latest, staleness: None, is_retried: false });
            }
            Err(failure) => failure,
        };
        let is_missing = failure.kind == LookFailureKind::Missing;
        if !wants_digest && !is_missing {
            // Nobody is to be worse off than with Flux, which does not look.
            return Ok(Resolution { latest: self.image_ref(None), staleness: None, is_retried: false });
        }
        let reference = self.image_ref(None).to_string();
        let staleness = failure.staleness(&reference);
        let kept = previous.latest_ref.as_ref().filter(|latest| {
            is_missing || latest.digest().is_some() && is_same_tag(Some(latest), self.image, self.tag)
        });
        if let Some(latest) = kept {
            return Ok(Resolution { latest: latest.clone(), staleness: Some(staleness), is_retried: true });
        }
        let ending = if wants_digest {
            Ending::Failure(
                Reason::Failed,
                format!("failed fetching digest of {reference}: {}", failure.words),
            )
        } else {
            let words = &failure.words;
            let message = format!(
                "{reference} is listed but cannot be pulled yet, and no image before it is known, so markers are left \
                 alone; try again later: {words}"
            );
            Ending::Failure(Reason::Failure, message)
        };
        Err(Unresolved { ending, staleness })
    }

    fn image_ref(&self, digest: Option<String>) -> ImageRef {
        ImageRef { name: self.image.to_owned(), tag: self.tag.to_owned(), digest }
    }
}

#[cfg(test)]
mod tests {
    use DigestReflectionPolicy::{Always, IfNotPresent, Never};

    use super::*;

    const LOOK: Need = Need::Look { wants_digest: true };
    const CHECK: Need = Need::Look { wants_digest: false };

    /// A status with the image `img` at this tag, and a digest behind an `@`.
    fn status(latest: &str) -> ImagePolicyStatus {
        let latest: Option<ImageRef> = (!latest.is_empty()).then(|| format!("img:{latest}").parse().unwrap());
        ImagePolicyStatus { latest_ref: latest, ..Default::default() }
    }

    fn question<'a>(
        digests: &'a DigestReflectionPolicy,
        trigger: Trigger,
        polled: Option<&'a Polled>,
    ) -> Question<'a> {
        let (following, first) = (Following::Alone, FirstImage::Counts);
        Question { image: "img", tag: "1", digests, trigger, polled, following, first }
    }

    fn settled(digest: &str) -> Need {
        Need::Settled(Some(digest.to_owned()).filter(|digest| !digest.is_empty()))
    }

    fn failure(kind: LookFailureKind) -> LookFailure {
        LookFailure { kind, words: "the words".to_owned(), retry_after: None }
    }

    #[test]
    fn the_registry_is_asked_only_for_what_is_not_known() {
        use Trigger::{TagList, User};
        let polled = Polled { digest: Some("d2".to_owned()), staleness: None };
        for (digests, latest, trigger, polled, expected) in [
            (Never, "1", TagList, None, settled("")),
            (Never, "1@d1", User, None, settled("")),
            (Never, "0", TagList, None, CHECK),
            (Never, "", TagList, None, settled("")),
            (IfNotPresent, "1@d1", User, None, settled("d1")),
            (IfNotPresent, "1", TagList, None, LOOK),
            (IfNotPresent, "0@d1", TagList, None, LOOK),
            (IfNotPresent, "", TagList, None, LOOK),
            (Always, "1@d1", TagList, None, settled("d1")),
            (Always, "1@d1", TagList, Some(&polled), settled("d2")),
            (Always, "1@d1", User, Some(&polled), LOOK),
            (Always, "1", TagList, None, LOOK),
            (Always, "0@d1", TagList, None, LOOK),
            (Always, "0@d1", TagList, Some(&polled), settled("d2")),
            (Always, "", TagList, None, LOOK),
        ] {
            let need = question(&digests, trigger, polled).need(&status(latest));
            assert_eq!(need, expected, "{digests:?} {latest} {trigger:?}");
        }
        for (digests, latest, expected) in [
            (Never, "", CHECK),
            (Never, "0", CHECK),
            (Never, "1", settled("")),
            (IfNotPresent, "", LOOK),
            (Always, "", LOOK),
        ] {
            let question = Question { first: FirstImage::LookedAt, ..question(&digests, TagList, None) };
            assert_eq!(question.need(&status(latest)), expected, "{digests:?} {latest}");
        }
        for (following, latest, polled, expected) in [
            (Following::Disabled, "1@d1", None, settled("d1")),
            (Following::Disabled, "0@d1", None, settled("")),
            (Following::Disabled, "", None, settled("")),
            (Following::InGroup, "1@d1", None, settled("d1")),
            (Following::InGroup, "1@d1", Some(&polled), settled("d2")),
            (Following::InGroup, "0@d1", None, Need::AwaitGroup),
            (Following::InGroup, "0@d1", Some(&polled), settled("d2")),
        ] {
            let question = Question { following, ..question(&Always, User, polled) };
            assert_eq!(question.need(&status(latest)), expected, "{following:?} {latest}");
        }
    }

    #[test]
    fn what_the_registry_says_is_reported_where_it_is_wanted() {
        let question = question(&Never, Trigger::TagList, None);
        for (wants_digest, digest) in [(true, Some("d2".to_owned())), (false, None)] {
            let found = question.looked(wants_digest, Ok("d2".to_owned()), &status("0@d1")).unwrap();
            assert_eq!(found.latest, ImageRef { name: "img".to_owned(), tag: "1".to_owned(), digest });
            assert_eq!((found.staleness, found.is_retried), (None, false));
        }
    }

    #[test]
    fn a_winner_without_a_manifest_keeps_the_one_before() {
        let missing = || Err(failure(LookFailureKind::Missing));
        let question = question(&Never, Trigger::TagList, None);
        for wants_digest in [true, false] {
            let kept = question.looked(wants_digest, missing(), &status("0@d1")).unwrap();
            assert_eq!(kept.latest.to_string(), "img:0@d1");
            assert!(kept.is_retried);
            let staleness = kept.staleness.unwrap();
            assert_eq!(staleness.reason, Reason::TagNotFound);
            assert_eq!(staleness.message, "the manifest of img:1 is not there: the words");
        }
        let nothing = question.looked(false, missing(), &status("")).unwrap_err();
        let words = "img:1 is listed but cannot be pulled yet, and no image before it is known, so markers are left alone; \
                     try again later: the words"
            .to_owned();
        assert_eq!(nothing.ending, Ending::Failure(Reason::Failure, words));
        // Any other answer lets it through where no digest is wanted.
        for kind in [LookFailureKind::Denied, LookFailureKind::Unavailable, LookFailureKind::Unreadable] {
            let found = question.looked(false, Err(failure(kind)), &status("0")).unwrap();
            assert_eq!((found.latest.to_string().as_str(), found.staleness), ("img:1", None));
        }
    }

    #[test]
    fn a_registry_that_does_not_answer_takes_nothing_away() {
        let question = question(&Always, Trigger::User, None);
        for (kind, reason) in [
            (LookFailureKind::Denied, Reason::AuthenticationFailed),
            (LookFailureKind::Unavailable, Reason::RegistryUnavailable),
        ] {
            let kept = question.looked(true, Err(failure(kind)), &status("1@d1")).unwrap();
            assert_eq!((kept.latest.to_string().as_str(), kept.is_retried), ("img:1@d1", true));
            assert_eq!(kept.staleness.unwrap().reason, reason);
            // Where there is no digest of this tag yet, it is Flux's failure.
            for latest in ["", "1", "0@d1"] {
                let failed = question.looked(true, Err(failure(kind)), &status(latest)).unwrap_err();
                let words = "failed fetching digest of img:1: the words".to_owned();
                assert_eq!(failed.ending, Ending::Failure(Reason::Failed, words));
                assert_eq!(failed.staleness.reason, reason);
            }
        }
        let staleness = failure(LookFailureKind::Unavailable).staleness("img:1");
        let polled = Polled { digest: Some("d1".to_owned()), staleness: Some(staleness.clone()) };
        let found = Question { polled: Some(&polled), ..question }.settled(Some("d1".to_owned()));
        assert_eq!(found.staleness, Some(staleness));
        assert!(!found.is_retried, "the poller tries again by itself");
    }

    #[test]
    fn a_group_counts_when_it_is_complete() {
        let question =
            Question { following: Following::InGroup, ..question(&Always, Trigger::TagList, None) };
        let kept = question.awaiting(&status("0@d1")).unwrap();
        assert_eq!(kept.latest.to_string(), "img:0@d1");
        assert_eq!(kept.staleness.unwrap().reason, Reason::GroupIncomplete);
        let nothing = question.awaiting(&status("")).unwrap_err();
        let words = "the digests of the group are not all known yet".to_owned();
        assert_eq!(nothing.ending, Ending::Failure(Reason::DependencyNotReady, words));
    }
}
