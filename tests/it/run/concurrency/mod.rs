//! Runs that meet others: on one branch or one state, killed, told to stop, or without the answer to a push.

mod batches;
mod kills;
mod load;
mod lost_answers;
mod races;
mod shared_state;
mod signals;
