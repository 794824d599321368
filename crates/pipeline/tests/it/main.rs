//! Pipelines as their callers see them: what creation refuses, what runs come to.

mod creation;
mod running;
mod support;
