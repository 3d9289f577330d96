//! Templates against what Go and sprig themselves made of them.

mod data;
mod limits;
mod table;
