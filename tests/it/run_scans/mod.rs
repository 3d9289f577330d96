//! `tagboat run` from a real registry to a real git server: what is pushed there ends in a commit here.

mod choices;
mod clouds;
mod failures;
mod given;
mod kept_tags;
mod progress;
mod pullable;
mod regressions;
mod remembrance;
mod scene;
mod travels;
mod wishes;
