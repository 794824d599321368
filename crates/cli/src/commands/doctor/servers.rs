//! The definitions of imported servers. None is started for this: `skillz servers refresh NAME` tries one.

use std::sync::Arc;

use skillz_engine::{Engine, NoClient, ServerAction, ServerRequest};
use skillz_json::Value;

use super::{Check, Examination};

impl Examination<'_> {
    pub(super) async fn servers(&self, engine: &Engine) -> anyhow::Result<Vec<Check>> {
        let request = ServerRequest { action: ServerAction::List, ..ServerRequest::default() };
        let answer = engine.import_server(request, Arc::new(NoClient)).await?;
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
