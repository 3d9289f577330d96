//! The time between two times.

use jiff::Timestamp;

/// The state of a rule at a time, and its shortest duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) is_active: bool,
    /// The time at which the state may change; without one it never does.
    pub(super) until: Option<Timestamp>,
}

impl Phase {
    /// Returns the phase of a rule that is active while one of its parts is.
    pub(super) fn any(parts: impl Iterator<Item = Self>) -> Self {
        let none = Self { is_active: false, until: None };
        parts.fold(none, |all, part| match (all.is_active, part.is_active) {
            (true, true) => {
                let latest = all.until.zip(part.until).map(|(one, other)| one.max(other));
                Self { is_active: true, until: latest }
            }
            (true, false) => all,
            (false, true) => part,
            (false, false) => Self { is_active: false, until: all.until.into_iter().chain(part.until).min() },
        })
    }

    /// Returns the phase of a rule that is active while another one is not.
    pub(super) fn inverted(self) -> Self {
        Self { is_active: !self.is_active, ..self }
    }
}

/// The time from a beginning to before an end; either may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) from: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
}

impl Period {
    /// Returns whether a time is in the period, and until when that is so.
    pub(super) fn phase(&self, now: Timestamp) -> Phase {
        match (self.from, self.until) {
            (Some(from), _) if now < from => Phase { is_active: false, until: Some(from) },
            (_, Some(until)) if now >= until => Phase { is_active: false, until: None },
            (_, until) => Phase { is_active: true, until },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_active_part_suffices() {
        let phase = |is_active, until: Option<i64>| Phase {
            is_active,
            until: until.map(|second| Timestamp::from_second(second).unwrap()),
        };
        for (parts, expected) in [
            (vec![], (false, None)),
            (vec![(false, Some(3)), (false, Some(2)), (false, None)], (false, Some(2))),
            (vec![(true, Some(3)), (true, Some(5)), (false, Some(2))], (true, Some(5))),
            (vec![(false, Some(2)), (true, Some(3)), (false, None)], (true, Some(3))),
            (vec![(true, Some(3)), (true, None)], (true, None)),
            (vec![(true, None), (false, Some(3)), (true, Some(3))], (true, None)),
        ] {
            let all = Phase::any(parts.iter().map(|(is_active, until)| phase(*is_active, *until)));
            assert_eq!(all, phase(expected.0, expected.1), "{parts:?}");
            assert_eq!(all.inverted(), phase(!expected.0, expected.1));
        }
    }
}
