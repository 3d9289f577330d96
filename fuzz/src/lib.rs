//! What the fuzz targets share: the policies of an update, the checks of its outcome, and a generator of YAML.

pub mod block;
pub mod check;
pub mod choices;
pub mod generate;
pub mod mask;
pub mod parsed;
pub mod scalars;
pub mod setup;
