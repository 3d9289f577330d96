//! Resolves the digest of the selected tag, or checks that its manifest exists (`docs/flux-behaviour.md`, Policies).
//!
//! A new winner is announced only after a lookup of its manifest, since some registries list a tag before it can be
//! pulled. The digest of a followed tag comes from the poller. A registry that does not answer takes nothing away from
//! what is known.

use tagboat_api::policy::{DigestReflectionPolicy, ImagePolicyStatus};
use tagboat_api::{ImageRef, Reason};

use super::choice::is_same_tag;
use crate::policy::downgrade::Trigger;
use crate::reconcile::lookup::{LookupFailure, LookupFailureKind, Staleness};
use crate::reconcile::run::Outcome;

/// The inputs of a digest's resolution, before any request.
#[derive(Clone, Copy, Debug)]
pub struct DigestResolver<'a> {
    /// The image, by the name that its repository has for it.
    pub image: &'a str,
    /// The selected tag.
    pub tag: &'a str,
    /// The digest reflection.
    pub digests: &'a DigestReflectionPolicy,
    /// The trigger of the run.
    pub trigger: Trigger,
    /// The state of the poller for this tag, if it follows it.
    pub polled: Option<&'a Polled>,
    /// The way in which the digest is followed.
    pub following: Following,
    /// The treatment of a winner that replaces no other tag.
    pub first: FirstImage,
}

/// The treatment of a winner that replaces no other tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstImage {
    /// It is announced without a lookup, as in Flux.
    ///
    /// A policy without an image would not be better.
    Counts,
    /// It is looked up like any other winner.
    ///
    /// A caller without earlier state may be about to overwrite a tag that works.
    LookedUp,
}

/// The way in which the digest of a tag is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    /// Alone.
    Alone,
    /// In a group: no digest counts before those of the other policies are known.
    InGroup,
    /// Not followed: the process looks up no digests of floating tags.
    Disabled,
}

/// The state of the poller for a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// The last digest that the registry returned.
    pub digest: Option<String>,
    /// The reason for which the registry returns no digest any more.
    pub staleness: Option<Staleness>,
}

/// The source of a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DigestSource {
    /// No lookup: this digest is reported, or none.
    Settled(Option<String>),
    /// A lookup at the registry.
    Lookup {
        /// True if the digest is reported; otherwise the manifest must only exist.
        wants_digest: bool,
    },
    /// The other policies of the group, which are awaited.
    AwaitGroup,
}

/// The report about the selected tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The image.
    pub latest: ImageRef,
    /// The reason for which it may be out of date.
    pub staleness: Option<Staleness>,
    /// True if the run is retried.
    pub is_retried: bool,
}

/// The error of a tag that cannot be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The outcome of the run.
    pub outcome: Outcome,
    /// The content of the condition `Stale`.
    pub staleness: Staleness,
}

impl DigestResolver<'_> {
    /// Decides where the digest comes from, given the `previous` status.
    pub fn need(&self, previous: &ImagePolicyStatus) -> DigestSource {
        let latest = previous.latest_ref.as_ref();
        let is_same = is_same_tag(latest, self.image, self.tag);
        let known = latest.filter(|_| is_same).and_then(ImageRef::digest).map(str::to_owned);
        let polled = self.polled.and_then(|polled| polled.digest.clone());
        match self.digests {
            DigestReflectionPolicy::Always if self.following == Following::Disabled => {
                DigestSource::Settled(known)
            }
            DigestReflectionPolicy::Always if self.following == Following::InGroup => {
                match polled.or(known) {
                    Some(digest) => DigestSource::Settled(Some(digest)),
                    None => DigestSource::AwaitGroup,
                }
            }
            DigestReflectionPolicy::Always => match (known, polled) {
                (Some(_), _) if self.trigger == Trigger::User => DigestSource::Lookup { wants_digest: true },
                (_, Some(polled)) => DigestSource::Settled(Some(polled)),
                (Some(known), None) => DigestSource::Settled(Some(known)),
                (None, None) => DigestSource::Lookup { wants_digest: true },
            },
            DigestReflectionPolicy::IfNotPresent => match known {
                Some(known) => DigestSource::Settled(Some(known)),
                None => DigestSource::Lookup { wants_digest: true },
            },
            _ if is_same => DigestSource::Settled(None),
            // If nothing was reported yet, a missing manifest would keep nothing.
            _ if latest.is_none() && self.first == FirstImage::Counts => DigestSource::Settled(None),
            _ => DigestSource::Lookup { wants_digest: false },
        }
    }

    /// Returns the report without a lookup.
    pub fn settled(&self, digest: Option<String>) -> Resolution {
        let staleness = self.polled.and_then(|polled| polled.staleness.clone());
        let is_followed = *self.digests == DigestReflectionPolicy::Always;
        Resolution {
            latest: self.image_ref(digest),
            staleness: staleness.filter(|_| is_followed),
            is_retried: false,
        }
    }

    /// Returns the report while the other policies of the group are awaited.
    ///
    /// # Errors
    ///
    /// If nothing was reported before.
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
                outcome: Outcome::Failure(Reason::DependencyNotReady, staleness.message.clone()),
                staleness,
            }),
        }
    }

    /// Returns the report after a lookup of the manifest.
    ///
    /// # Errors
    ///
    /// If the digest is reported and could not be looked up, or if the manifest does not exist and there is no earlier
    /// image.
    pub fn looked(
        &self,
        wants_digest: bool,
        answer: Result<String, LookupFailure>,
        previous: &ImagePolicyStatus,
    ) -> Result<Resolution, Unresolved> {
        let failure = match answer {
            Ok(digest) => {
                let latest = self.image_ref(Some(digest).filter(|_| wants_digest));
                return Ok(Resolution { latest, staleness: None, is_retried: false });
            }
            Err(failure) => failure,
        };
        let is_missing = failure.kind == LookupFailureKind::Missing;
        if !wants_digest && !is_missing {
            // The result is never worse than with Flux, which makes no lookup.
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
        let outcome = if wants_digest {
            Outcome::Failure(
                Reason::Failed,
                format!("failed fetching digest of {reference}: {}", failure.message),
            )
        } else {
            let cause = &failure.message;
            let message = format!(
                "{reference} is listed but cannot be pulled yet, and no previous image is known, so markers are left \
                 alone; try again later: {cause}"
            );
            Outcome::Failure(Reason::Failure, message)
        };
        Err(Unresolved { outcome, staleness })
    }

    fn image_ref(&self, digest: Option<String>) -> ImageRef {
        ImageRef { name: self.image.to_owned(), tag: self.tag.to_owned(), digest }
    }
}

#[cfg(test)]
mod tests {
    use DigestReflectionPolicy::{Always, IfNotPresent, Never};

    use super::*;

    const LOOK: DigestSource = DigestSource::Lookup { wants_digest: true };
    const CHECK: DigestSource = DigestSource::Lookup { wants_digest: false };

    /// A status with the image `img` at this tag, and a digest behind an `@`.
    fn status(latest: &str) -> ImagePolicyStatus {
        let latest: Option<ImageRef> = (!latest.is_empty()).then(|| format!("img:{latest}").parse().unwrap());
        ImagePolicyStatus { latest_ref: latest, ..Default::default() }
    }

    fn question<'a>(
        digests: &'a DigestReflectionPolicy,
        trigger: Trigger,
        polled: Option<&'a Polled>,
    ) -> DigestResolver<'a> {
        let (following, first) = (Following::Alone, FirstImage::Counts);
        DigestResolver { image: "img", tag: "1", digests, trigger, polled, following, first }
    }

    fn settled(digest: &str) -> DigestSource {
        DigestSource::Settled(Some(digest.to_owned()).filter(|digest| !digest.is_empty()))
    }

    fn failure(kind: LookupFailureKind) -> LookupFailure {
        LookupFailure { kind, message: "the words".to_owned(), retry_after: None }
    }

    #[test]
    fn only_unknown_digests_are_looked_up() {
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
            let question =
                DigestResolver { first: FirstImage::LookedUp, ..question(&digests, TagList, None) };
            assert_eq!(question.need(&status(latest)), expected, "{digests:?} {latest}");
        }
        for (following, latest, polled, expected) in [
            (Following::Disabled, "1@d1", None, settled("d1")),
            (Following::Disabled, "0@d1", None, settled("")),
            (Following::Disabled, "", None, settled("")),
            (Following::InGroup, "1@d1", None, settled("d1")),
            (Following::InGroup, "1@d1", Some(&polled), settled("d2")),
            (Following::InGroup, "0@d1", None, DigestSource::AwaitGroup),
            (Following::InGroup, "0@d1", Some(&polled), settled("d2")),
        ] {
            let question = DigestResolver { following, ..question(&Always, User, polled) };
            assert_eq!(question.need(&status(latest)), expected, "{following:?} {latest}");
        }
    }

    #[test]
    fn the_digest_of_the_registry_is_reported_only_if_it_is_wanted() {
        let question = question(&Never, Trigger::TagList, None);
        for (wants_digest, digest) in [(true, Some("d2".to_owned())), (false, None)] {
            let found = question.looked(wants_digest, Ok("d2".to_owned()), &status("0@d1")).unwrap();
            assert_eq!(found.latest, ImageRef { name: "img".to_owned(), tag: "1".to_owned(), digest });
            assert_eq!((found.staleness, found.is_retried), (None, false));
        }
    }

    #[test]
    fn a_winner_without_a_manifest_keeps_the_one_before() {
        let missing = || Err(failure(LookupFailureKind::Missing));
        let question = question(&Never, Trigger::TagList, None);
        for wants_digest in [true, false] {
            let kept = question.looked(wants_digest, missing(), &status("0@d1")).unwrap();
            assert_eq!(kept.latest.to_string(), "img:0@d1");
            assert!(kept.is_retried);
            let staleness = kept.staleness.unwrap();
            assert_eq!(staleness.reason, Reason::TagNotFound);
            assert_eq!(staleness.message, "the manifest of img:1 does not exist: the words");
        }
        let nothing = question.looked(false, missing(), &status("")).unwrap_err();
        let message = "img:1 is listed but cannot be pulled yet, and no previous image is known, so markers are left alone; \
                     try again later: the words"
            .to_owned();
        assert_eq!(nothing.outcome, Outcome::Failure(Reason::Failure, message));
        // Any other answer lets it through where no digest is wanted.
        for kind in [LookupFailureKind::Denied, LookupFailureKind::Unavailable, LookupFailureKind::Unreadable]
        {
            let found = question.looked(false, Err(failure(kind)), &status("0")).unwrap();
            assert_eq!((found.latest.to_string().as_str(), found.staleness), ("img:1", None));
        }
    }

    #[test]
    fn an_unavailable_registry_keeps_the_known_digest() {
        let question = question(&Always, Trigger::User, None);
        for (kind, reason) in [
            (LookupFailureKind::Denied, Reason::AuthenticationFailed),
            (LookupFailureKind::Unavailable, Reason::RegistryUnavailable),
        ] {
            let kept = question.looked(true, Err(failure(kind)), &status("1@d1")).unwrap();
            assert_eq!((kept.latest.to_string().as_str(), kept.is_retried), ("img:1@d1", true));
            assert_eq!(kept.staleness.unwrap().reason, reason);
            // Where there is no digest of this tag yet, it is Flux's failure.
            for latest in ["", "1", "0@d1"] {
                let failed = question.looked(true, Err(failure(kind)), &status(latest)).unwrap_err();
                let message = "failed fetching digest of img:1: the words".to_owned();
                assert_eq!(failed.outcome, Outcome::Failure(Reason::Failed, message));
                assert_eq!(failed.staleness.reason, reason);
            }
        }
        let staleness = failure(LookupFailureKind::Unavailable).staleness("img:1");
        let polled = Polled { digest: Some("d1".to_owned()), staleness: Some(staleness.clone()) };
        let found = DigestResolver { polled: Some(&polled), ..question }.settled(Some("d1".to_owned()));
        assert_eq!(found.staleness, Some(staleness));
        assert!(!found.is_retried, "the poller tries again by itself");
    }

    #[test]
    fn a_group_is_applied_once_it_is_complete() {
        let question =
            DigestResolver { following: Following::InGroup, ..question(&Always, Trigger::TagList, None) };
        let kept = question.awaiting(&status("0@d1")).unwrap();
        assert_eq!(kept.latest.to_string(), "img:0@d1");
        assert_eq!(kept.staleness.unwrap().reason, Reason::GroupIncomplete);
        let nothing = question.awaiting(&status("")).unwrap_err();
        let message = "the digests of the group are not all known yet".to_owned();
        assert_eq!(nothing.outcome, Outcome::Failure(Reason::DependencyNotReady, message));
    }
}
