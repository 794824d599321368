//! The server's own tools, one file each: what clients are told of it, its arguments, and one call of the engine.
//!
//! The thirteen descriptions and schemas are in every client's context all the time, so every word counts:
//! a test keeps them under 2,000 tokens. What needs more room stands in `docs/`.

mod arguments;
mod build_tool;
mod call_tool;
mod delete_tool;
mod execute_code;
mod import_mcp;
mod import_tool;
mod list_tools;
mod memory;
mod pipeline;
mod publishing;
mod register_script;
mod services;
mod test_tool;
mod version;

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use serde::Serialize;
use skillz_engine::{CallReply, ClientPort, Engine};
use skillz_json::{Map, Value};
use skillz_tool::{CompiledSchema, ToolError};

/// Every built-in, sorted by name.
pub(crate) static ALL: [&Builtin; 13] = [
    &build_tool::BUILTIN,
    &call_tool::BUILTIN,
    &delete_tool::BUILTIN,
    &execute_code::BUILTIN,
    &import_mcp::BUILTIN,
    &import_tool::BUILTIN,
    &list_tools::BUILTIN,
    &memory::BUILTIN,
    &pipeline::BUILTIN,
    &register_script::BUILTIN,
    &services::BUILTIN,
    &test_tool::BUILTIN,
    &version::BUILTIN,
];

/// The built-in of that name.
pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    ALL.into_iter().find(|builtin| builtin.name == name)
}

/// What clients are told of a built-in, and what it does.
pub(crate) struct Builtin {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it does, for the model that chooses it.
    pub(crate) description: &'static str,
    /// Hints for clients.
    pub(crate) hints: Hints,
    schema_text: &'static str,
    schema: OnceLock<CompiledSchema>,
    run: fn(BuiltinCall) -> BoxFuture<'static, BuiltinOutcome>,
}

/// Which of MCP's hints a built-in has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hints {
    /// Changes nothing, and stays on this machine.
    ReadOnly,
    /// Changes something of the server's own, in a way that can be taken back.
    Changes,
    /// May destroy something of the server's own.
    Destroys,
    /// Runs programs or reaches other machines.
    OpenWorld,
}

/// One call of a built-in.
pub(crate) struct BuiltinCall {
    /// The engine.
    pub(crate) engine: Engine,
    /// Its arguments: known names only, JSON text already parsed where an object or array is wanted.
    pub(crate) arguments: Value,
    /// Whoever called.
    pub(crate) client: Arc<dyn ClientPort>,
}

/// What a built-in gives back.
#[derive(Debug)]
pub(crate) enum BuiltinReply {
    /// A value, to be sent as structured content and text.
    Value(Value),
    /// Another tool's result, passed on as it is.
    Tool(Box<CallReply>),
}

pub(crate) type BuiltinOutcome = Result<BuiltinReply, ToolError>;

impl Builtin {
    const fn new(
        name: &'static str,
        description: &'static str,
        schema_text: &'static str,
        hints: Hints,
        run: fn(BuiltinCall) -> BoxFuture<'static, BuiltinOutcome>,
    ) -> Self {
        Self { name, description, hints, schema_text, schema: OnceLock::new(), run }
    }

    /// The schema of its arguments; parsed at the first use.
    pub(crate) fn schema(&self) -> &CompiledSchema {
        // A test parses every text, so the fallback is never taken.
        self.schema.get_or_init(|| CompiledSchema::new(serde_json::from_str(self.schema_text).unwrap_or(Value::Null)))
    }

    /// Calls it with arguments as they came.
    pub(crate) async fn call(
        &'static self,
        engine: Engine,
        arguments: Option<Map<String, Value>>,
        client: Arc<dyn ClientPort>,
    ) -> BuiltinOutcome {
        let arguments = arguments::prepare(self, arguments.unwrap_or_default())?;
        (self.run)(BuiltinCall { engine, arguments, client }).await
    }
}

impl BuiltinReply {
    /// A reply made of something that serialises to a JSON object.
    fn of(value: &impl Serialize) -> BuiltinOutcome {
        skillz_json::to_value(value).map(Self::Value).map_err(ToolError::internal)
    }
}

#[cfg(test)]
mod tests {
    use skillz_tool::BUILTIN_NAMES;

    use super::*;
    use crate::convert;

    #[test]
    fn the_built_ins_are_those_of_the_vocabulary_and_their_schemas_are_valid() {
        assert_eq!(ALL.map(|builtin| builtin.name), BUILTIN_NAMES);
        for builtin in ALL {
            assert!(builtin.schema().as_value().get("properties").is_some(), "{}", builtin.name);
            assert!(builtin.schema().unchecked_parts().is_ok_and(<[_]>::is_empty), "{}", builtin.name);
        }
    }

    #[test]
    fn they_take_little_of_a_clients_context() {
        let tools: Vec<_> = ALL.iter().map(|builtin| convert::builtin(builtin)).collect();
        let listed = serde_json::to_string(&tools).expect("tools serialise");
        let tokens = tiktoken_rs::o200k_base().expect("the table is part of the crate").encode_ordinary(&listed).len();
        assert!(tokens < 2_000, "{tokens} tokens");
    }
}
