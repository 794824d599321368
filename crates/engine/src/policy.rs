//! What a tool may have: asked for by its manifest, and allowed by the operator.
//!
//! What can be decided once per tool is decided in [`Wishes::read`]; folders are looked at in each call, since
//! roots and links may change. Consent of the user is the business of [`crate::consent`].

use skillz_tool::{EnvironmentVariable, ErrorKind, Grants, NetworkPermission, Permissions, Tool, ToolError};

use crate::{
    EngineSettings, PolicyMode,
    engine::Engine,
    folders::{FolderWish, ResolvedFolders},
    tree::CallTree,
};

/// The server's own tokens: never a tool's, however it asks.
const OWN_TOKENS: [&str; 2] = ["SKILLZ_AUTH_TOKEN", "SKILLZ_MEMORY_TOKEN"];

/// The permissions of a tool, read once.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// Granted network, where no consent stands against it.
    network: NetworkPermission,
    /// Granted variables that are set.
    pub(crate) environment: Vec<EnvironmentVariable>,
    /// Named variables that are not set.
    pub(crate) missing: Vec<String>,
    folders: Vec<FolderWish>,
    /// What the user must agree to, in words, folders aside.
    asks: Vec<String>,
    /// Why the tool cannot be called at all.
    refused: Option<ToolError>,
}

impl Wishes {
    /// Reads what a tool asks for in the light of what the operator allows.
    pub(crate) fn read(tool: &Tool, settings: &EngineSettings) -> Self {
        let permissions = &tool.manifest.permissions;
        let mut wishes = Self::default();
        wishes.read_network(tool, permissions, settings);
        wishes.read_environment(tool, permissions, settings);
        for folder in &permissions.fs {
            match FolderWish::read(folder) {
                Ok(wish) => wishes.folders.push(wish),
                Err(reason) => wishes
                    .refuse(ToolError::new(ErrorKind::Denied, format!("`{}` cannot have what it asks for: {reason}", tool.name))),
            }
        }
        if wishes.folders.iter().any(|wish| !wish.is_own_data()) && settings.policy.folders == Some(PolicyMode::Deny) {
            wishes.refuse(denied(tool, "folders", "fs"));
        }
        wishes
    }

    /// Whether a workspace root is asked for, so that the client has to be asked for its roots.
    pub(crate) fn names_root(&self) -> bool {
        self.folders.iter().any(FolderWish::names_root)
    }

    /// Whether the tool's data folder is asked for, so that it has to be there.
    pub(crate) fn names_data(&self) -> bool {
        self.folders.iter().any(FolderWish::is_own_data)
    }

    fn read_network(&mut self, tool: &Tool, permissions: &Permissions, settings: &EngineSettings) {
        if settings.network_for_all {
            self.network = NetworkPermission::All(true);
            return;
        }
        if permissions.network.is_none() {
            return;
        }
        match settings.policy.network {
            PolicyMode::Deny => self.refuse(denied(tool, "the network", "network")),
            PolicyMode::Ask => self.asks.push(in_words(&permissions.network)),
            PolicyMode::Declared => {}
        }
        self.network = permissions.network.clone();
    }

    fn read_environment(&mut self, tool: &Tool, permissions: &Permissions, settings: &EngineSettings) {
        for name in permissions.env.iter().filter(|name| !OWN_TOKENS.contains(&name.as_str())) {
            match settings.policy.environment {
                PolicyMode::Deny => self.refuse(denied(tool, &format!("the environment variable `{name}`"), "env")),
                PolicyMode::Ask => self.asks.push(format!("the value of the environment variable `{name}`")),
                PolicyMode::Declared => {}
            }
            match settings.environment.get(name) {
                Some(value) => self.environment.push(EnvironmentVariable { name: name.clone(), value: value.clone() }),
                None => self.missing.push(name.clone()),
            }
        }
        if settings.forward_all {
            let others = settings.environment.iter().filter(|(name, _)| {
                name.starts_with("SKILLZ_") && !OWN_TOKENS.contains(&name.as_str()) && !permissions.env.contains(name)
            });
            self.environment.extend(others.map(|(name, value)| EnvironmentVariable { name: name.clone(), value: value.clone() }));
        }
    }

    fn refuse(&mut self, error: ToolError) {
        self.refused.get_or_insert(error);
    }
}

impl Engine {
    /// Decides what a call may reach; asks the user where the policy says so.
    pub(crate) async fn authorise(&self, callable: &crate::callable::Callable, tree: &CallTree) -> Result<Grants, ToolError> {
        let wishes = &callable.wishes;
        if let Some(error) = &wishes.refused {
            return Err(error.clone());
        }
        let folders = if wishes.folders.is_empty() {
            ResolvedFolders::default()
        } else {
            let settings = self.settings();
            let roots = if wishes.names_root() { tree.roots(settings).await } else { tree.known_roots(settings) };
            crate::folders::resolve(&callable.tool, &wishes.folders, &roots, callable.data_directory(), settings)?
        };
        if !wishes.asks.is_empty() || !folders.asks.is_empty() {
            let asks = wishes.asks.iter().cloned().chain(folders.asks).collect();
            self.consents().require(&callable.tool, asks, tree.client()).await?;
        }
        Ok(Grants { network: wishes.network.clone(), folders: folders.grants, environment: wishes.environment.clone() })
    }
}

/// Checks permissions as a new version of a tool asks for them, so that faults show when it is published.
pub(crate) fn check_permissions(permissions: &Permissions) -> Vec<String> {
    let mut faults = Vec::new();
    for name in &permissions.env {
        if OWN_TOKENS.contains(&name.as_str()) {
            faults.push(format!("`permissions.env`: `{name}` is the server's own token and is never given to a tool"));
        } else if name.is_empty()
            || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            || name.starts_with(|first: char| first.is_ascii_digit())
        {
            faults.push(format!(
                "`permissions.env`: `{name}` is no name of an environment variable; write the names only, without values"
            ));
        }
    }
    faults.extend(
        permissions
            .fs
            .iter()
            .filter_map(|folder| FolderWish::read(folder).err())
            .map(|reason| format!("`permissions.fs`: {reason}")),
    );
    faults
}

fn denied(tool: &Tool, what: &str, key: &str) -> ToolError {
    let message =
        format!("`{}` asks for {what}, and the operator's policy (`[policy] {key} = \"deny\"`) refuses that", tool.name);
    ToolError::new(ErrorKind::Denied, message).with_hint(format!(
        "Publish a version that does without it, or let the operator change `[policy] {key}` in the server's `config.toml`"
    ))
}

fn in_words(network: &NetworkPermission) -> String {
    match network {
        NetworkPermission::All(_) => "the whole network".to_owned(),
        NetworkPermission::Hosts(hosts) => {
            let hosts: Vec<String> = hosts.iter().map(|host| format!("`{}`", String::from(host.clone()))).collect();
            format!("the network hosts {}", hosts.join(", "))
        }
    }
}
