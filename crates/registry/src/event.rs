//! What happens to tools, told to whoever must act on it.

use skillz_tool::{ToolName, Version};

/// Something happened to a tool, here, in another process, or by hand. Sent after the catalog shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryEvent {
    /// A version became current: published, rolled back, copied in, or published by another process.
    Published {
        /// The tool.
        name: ToolName,
        /// The version that is current now.
        version: Version,
        /// The version that was current before, for whoever keeps something warm for it.
        previous: Option<Version>,
    },
    /// Files of the tool were changed by hand: look at them with [`crate::Registry::stage_edit`].
    Edited {
        /// The tool.
        name: ToolName,
    },
    /// The tool is gone.
    Removed {
        /// The tool.
        name: ToolName,
    },
    /// The folder cannot be used as it stands; [`crate::Catalog::broken`] says why.
    Broken {
        /// The folder's name.
        name: String,
    },
}
