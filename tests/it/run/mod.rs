//! `tagboat run` against real git servers: what goes wrong between two programs and a network, and what is left then.

mod batches;
mod crowd;
mod hung_servers;
mod kills;
mod lost_answers;
mod races;
mod redirects;
mod refspecs;
mod refusals;
mod signals;
mod vanished_bases;
