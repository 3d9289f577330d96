//! Limits of a YAML file.

/// The limits within which a file is read.
///
/// They are far above anything that people write, and far below anything that could exhaust a controller's memory: many
/// people write to a repository, and one file must not stop all the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of a file in bytes.
    pub file_size: usize,
    /// The maximum nesting depth of mappings and sequences, block and flow together.
    pub depth: usize,
    /// The maximum number of nodes that the aliases of one document expand to.
    pub alias_nodes: u64,
    /// The maximum length of one comment in bytes.
    pub comment_length: usize,
    /// The maximum number of comments without a value between them.
    pub comment_run: usize,
    /// The maximum number of markers and near misses in one file.
    pub markers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_size: 16 * 1024 * 1024,
            depth: 200,
            alias_nodes: 1_000_000,
            comment_length: 64 * 1024,
            comment_run: 20_000,
            markers: 10_000,
        }
    }
}
