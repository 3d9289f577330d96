//! Compares templates with the results of Go and sprig.

mod data;
mod limits;
mod table;
