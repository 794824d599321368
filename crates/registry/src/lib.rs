//! Tools on disk.
