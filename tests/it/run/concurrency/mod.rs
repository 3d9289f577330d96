//! Tests of runs that meet others or are interrupted.
//! They meet on one branch or one state, or they are killed, told to stop, or without the answer to a push.

mod batches;
mod kills;
mod load;
mod lost_answers;
mod races;
mod shared_state;
mod signals;
