//! `tagboat run` from a real registry to a real git server: what is pushed there ends in a commit here.

mod choices;
mod clouds;
mod failures;
mod given;
mod kept_tags;
mod overlap;
mod progress;
mod pullable;
mod regressions;
mod remembrance;
mod scene;
mod travels;
mod wishes;
