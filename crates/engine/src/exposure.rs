//! Which tools stand in the protocol's tool list.

use std::sync::Arc;

use skillz_tool::Tool;

/// The tools that belong in `tools/list` now, besides the built-ins.
#[derive(Debug, Default)]
pub struct Exposed {
    /// Sorted by name.
    pub tools: Vec<Arc<Tool>>,
    /// Whether there are more tools, which are reached by `list_tools`, `call_tool` and code.
    pub more: bool,
}
