//! Bounds on what a YAML file may ask of us.

/// The bounds that a file must keep to be read.
///
/// They are far above anything a person writes and far below anything that could exhaust a controller's
/// memory: a repository's content is written by many hands, and one file must not stop all the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The size of a file, in bytes.
    pub file_size: usize,
    /// How deep mappings and sequences may be nested, block and flow together.
    pub depth: usize,
    /// How many nodes the aliases of one document may stand for, all of them expanded.
    pub alias_nodes: u64,
    /// The length of one comment, in bytes.
    pub comment_length: usize,
    /// How many comments may follow one another without a value between them.
    pub comment_run: usize,
    /// How many markers and near misses one file may have.
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
