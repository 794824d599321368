//! The definitions of imported servers. None is started for this: `skillz servers refresh NAME` tries one.

use std::sync::Arc;

use serde_json::Value;
use skillz_engine::{NoClient, ServerAction, ServerRequest};

use super::{Check, Examination};
use crate::wire;

impl Examination<'_> {
    pub(super) async fn servers(&self) -> anyhow::Result<Vec<Check>> {
        let parts = wire::parts(&self.context.resolved, wire::Purpose::OneCommand)?;
        parts.engine.ready().await;
        let request = ServerRequest { action: ServerAction::List, ..ServerRequest::default() };
        let answer = parts.engine.import_server(request, Arc::new(NoClient)).await?;
        let count = answer.get("servers").and_then(Value::as_array).map_or(0, Vec::len);
        let mut checks = vec![Check::ok("imported servers", format!("{count} servers"))];
        for (name, reason) in answer.get("broken").and_then(Value::as_object).into_iter().flatten() {
            let reason = reason.as_str().unwrap_or_default();
            let fix = format!("mend the file, or `skillz servers remove {name}`");
            checks.push(Check::broken(format!("server {name}"), reason, fix));
        }
        Ok(checks)
    }
}
