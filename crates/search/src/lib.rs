//! Search for tools by meaning: a table of word vectors, keywords beside it, and correction of typos.
//!
//! The table is part of the program (`data/README.md` says what it is and what it cannot do). The engine
//! keeps an [`Index`] in step with its catalogue; nothing here knows of files, processes or MCP.
#![warn(missing_docs)]

mod index;
mod rank;
mod spelling;
mod table;
mod text;
mod vector;
mod vocabulary;

pub use index::{Document, Index};
pub use rank::Hit;
