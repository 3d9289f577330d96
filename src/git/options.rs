//! The options of a writer.

use super::context::WriterContext;
use super::mirror_store::MirrorStore;
use super::slots::TransactionSlots;

/// The options of a writer.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The mirrors.
    pub mirrors: MirrorStore,
    /// Set in a dry run, in which everything is done but the push.
    pub is_dry_run: bool,
    /// Stop token, metrics and capacity.
    pub context: WriterContext,
    /// Limits the transactions that run at once.
    pub slots: TransactionSlots,
}
