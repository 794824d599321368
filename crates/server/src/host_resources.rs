//! The server's resources for running tools. They see the same as clients, but no results and no history:
//! those belong to whoever made the calls.

use std::sync::Weak;

use async_trait::async_trait;
use skillz_engine::ResourceSource;
use skillz_json::{Value, json};
use skillz_tool::{ErrorKind, ToolError};

use crate::{
    handler::Shared,
    read,
    resources::{self, Address},
    skills,
};

/// Resources for running tools. The engine keeps this, so this must not keep the engine.
pub(crate) struct HostResources {
    pub(crate) server: Weak<Shared>,
}

#[async_trait]
impl ResourceSource for HostResources {
    fn list(&self) -> Value {
        let Some(server) = self.server.upgrade() else { return json!({"resources": []}) };
        let catalog = server.engine.catalog();
        let fixed = resources::fixed().into_iter().filter(|resource| is_open(&resource.uri));
        let tools = catalog.tools().map(|tool| resources::of_tool(tool));
        let skills: Vec<_> = server.engine.skills().list().iter().map(skills::resource).collect();
        json!({"resources": fixed.chain(tools).chain(skills).collect::<Vec<_>>()})
    }

    async fn read(&self, uri: &str) -> Result<Value, ToolError> {
        if !is_open(uri) {
            return Err(ToolError::new(
                ErrorKind::Denied,
                format!("Tools cannot read `{uri}`: results and the history belong to the client"),
            ));
        }
        let Some(server) = self.server.upgrade() else { return Err(ToolError::internal("The server is ending")) };
        Ok(json!({"contents": [read::read(&server.engine, uri).await?]}))
    }
}

fn is_open(uri: &str) -> bool {
    !matches!(Address::parse(uri), Some(Address::Result(_) | Address::History))
}
