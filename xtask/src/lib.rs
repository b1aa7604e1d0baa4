//! Development tasks that tests check as well: the book, the packages, and the language and the names of the
//! source.

pub mod book;
pub mod dist;
pub mod package;
pub mod provenance;
pub mod results;
pub mod source;
pub mod tidy;
pub mod wheel;
