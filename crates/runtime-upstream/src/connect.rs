//! Connects to a server by whichever way its definition says.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use reqwest::Url;
use skillz_process::{Command, ProcessLimits};
use skillz_sandbox::Policy;
use skillz_tool::ToolError;
use tokio_util::sync::CancellationToken;

use crate::{
    client::{self, Greeting},
    connection::{Connection, Era},
    definition::{self, Reach},
    error::{LinkError, RequestError},
    link::{HttpLink, Link, Pipes, SseLink, follow_events, request_headers},
    server::Server,
    settings::FoundProgram,
};

/// Variables that say nothing secret and that programs need: who the user is, where folders are, which language.
const HARMLESS: [&str; 22] = [
    "APPDATA",
    "COLORTERM",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOCALAPPDATA",
    "LOGNAME",
    "NVM_DIR",
    "PROGRAMFILES",
    "PYENV_ROOT",
    "SHELL",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERPROFILE",
    "VOLTA_HOME",
    "ASDF_DATA_DIR",
    "XDG_RUNTIME_DIR",
];
/// Beginnings of the names of further ones.
const HARMLESS_BEGINNINGS: [&str; 2] = ["LC_", "XDG_"];
/// Memory of a confined server, in bytes: that of a script.
const CONFINED_MEMORY: u64 = 1_024 << 20;
/// Processes and threads of a confined server. More than a script's, since one that is installed first starts others.
const CONFINED_PROCESSES: u32 = 128;
/// How long a remote server may take to be told that its session is over.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long a stream of notes that ended is left alone.
const LISTEN_PAUSE: Duration = Duration::from_secs(1);

impl Server {
    /// Connects and greets. What this starts ends with `session`.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        session: &CancellationToken,
    ) -> Result<(Arc<Connection>, Greeting), RequestError> {
        match definition::check(&self.definition).map_err(unusable)? {
            Reach::Command(command) => self.connect_process(&command, session).await,
            Reach::Url(url) => match self.connect_http(url.clone(), session).await {
                Err(error) if client::wants_older_transport(&error) => {
                    // The first error says more where there is no such stream either.
                    self.connect_events(url, session).await.map_err(|older| match older {
                        RequestError::Link(LinkError::Refused { .. }) => error,
                        older => older,
                    })
                }
                connected => connected,
            },
        }
    }

    async fn connect_process(
        self: &Arc<Self>,
        command: &str,
        session: &CancellationToken,
    ) -> Result<(Arc<Connection>, Greeting), RequestError> {
        let tail = self.new_tail();
        let command = self.command(command).map_err(unusable)?;
        let child = self.settings.launcher.spawn(command).await.map_err(|error| LinkError::Over(error.to_string()))?;
        let (link, pipes) = Pipes::new(child, tail, self.secrets.clone());
        let connection = Connection::new(Link::Stdio(link));
        self.tasks.spawn(pipes.drive(Arc::clone(&connection), session.clone()));
        let greeting = client::greet(&connection).await?;
        self.follow_changes(&connection, &greeting, session);
        Ok((connection, greeting))
    }

    async fn connect_http(
        self: &Arc<Self>,
        url: Url,
        session: &CancellationToken,
    ) -> Result<(Arc<Connection>, Greeting), RequestError> {
        let headers = request_headers(self.secrets.headers.iter())?;
        let link = HttpLink::new(self.http.get()?.clone(), url, headers);
        let connection = Connection::new(Link::Http(link));
        let greeting = client::greet(&connection).await?;
        self.follow_changes(&connection, &greeting, session);
        if matches!(connection.era(), Some(Era::Handshake(_))) {
            let (own, session) = (Arc::clone(&connection), session.clone());
            self.tasks.spawn(async move {
                let Link::Http(link) = own.link() else { return };
                session
                    .run_until_cancelled(async {
                        link.listen(&own).await;
                        std::future::pending::<()>().await;
                    })
                    .await;
                let _ = tokio::time::timeout(FAREWELL, link.end(&own)).await;
            });
        }
        Ok((connection, greeting))
    }

    async fn connect_events(
        self: &Arc<Self>,
        url: Url,
        session: &CancellationToken,
    ) -> Result<(Arc<Connection>, Greeting), RequestError> {
        let headers = request_headers(self.secrets.headers.iter())?;
        let (link, stream) = SseLink::open(self.http.get()?.clone(), url, headers).await?;
        let connection = Connection::new(Link::Sse(link));
        let (own, session) = (Arc::clone(&connection), session.clone());
        self.tasks.spawn(async move { session.run_until_cancelled(follow_events(stream, own)).await });
        let greeting = client::greet(&connection).await?;
        Ok((connection, greeting))
    }

    /// Stateless servers tell of changes only to those who listen.
    fn follow_changes(&self, connection: &Arc<Connection>, greeting: &Greeting, session: &CancellationToken) {
        if !matches!(connection.era(), Some(Era::Stateless(_))) || !greeting.tells_of_changes() {
            return;
        }
        let (connection, session) = (Arc::clone(connection), session.clone());
        self.tasks.spawn(async move {
            let listening = async {
                while client::listen(&connection).await.is_ok() {
                    tokio::time::sleep(LISTEN_PAUSE).await;
                }
            };
            session.run_until_cancelled(listening).await
        });
    }

    fn command(&self, command: &str) -> Result<Command, ToolError> {
        let settings = &self.settings;
        let beside = settings.working_directory.join(command);
        let program = if command.contains('/') && beside.is_file() {
            FoundProgram { visible: vec![beside.clone()], confined_path: beside.clone(), path: beside }
        } else {
            (settings.find_program)(command)?
        };
        let mut environment = self.environment(&program);
        let mut directory = settings.working_directory.clone();
        let mut limits = ProcessLimits::default();
        let mut policy = None;
        if self.definition.sandbox {
            directory = self.private_folder()?;
            for name in ["HOME", "TMPDIR"] {
                environment.insert(name.to_owned(), directory.clone().into_os_string());
            }
            environment.retain(|name, _| !name.starts_with("XDG_") || self.secrets.environment.contains_key(name));
            limits.memory_bytes = Some(CONFINED_MEMORY);
            limits.max_processes = Some(CONFINED_PROCESSES);
            policy = Some(self.policy(&program, directory.clone()));
        }
        Ok(Command {
            program: if policy.is_some() { program.confined_path } else { program.path },
            arguments: self.definition.args.iter().map(OsString::from).collect(),
            environment: environment.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            directory,
            policy,
            limits,
        })
    }

    /// Harmless variables, and those that the definition gives, which win.
    fn environment(&self, program: &FoundProgram) -> BTreeMap<String, OsString> {
        let is_harmless = |name: &String| {
            HARMLESS.contains(&name.as_str()) || HARMLESS_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        };
        let own = self.settings.environment.iter().filter(|(name, _)| is_harmless(name));
        let mut variables: BTreeMap<String, OsString> = own.map(|(name, value)| (name.clone(), value.into())).collect();
        // Its siblings come first: `npx` wants the `node` beside it.
        let folders = program.path.parent().map(PathBuf::from).into_iter().chain(self.settings.search_path.iter().cloned());
        variables.insert("PATH".to_owned(), env::join_paths(folders).unwrap_or_default());
        variables.extend(self.secrets.environment.iter().map(|(name, value)| (name.clone(), value.into())));
        variables
    }

    fn private_folder(&self) -> Result<PathBuf, ToolError> {
        let folder = self.settings.data_directory.join(&self.name);
        let made = std::fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
        made.map_err(|error| ToolError::failed(format!("The folder `{}` could not be made: {error}", folder.display())))
    }

    /// What a confined server sees: its program, what its arguments name, and a folder of its own. It has the network.
    fn policy(&self, program: &FoundProgram, folder: PathBuf) -> Policy {
        let mut policy = Policy { network: true, ..Policy::default() };
        policy.allow_reading(&program.confined_path);
        program.visible.iter().for_each(|place| policy.allow_reading(place));
        self.named_places().filter(|path| !self.is_closed(path)).for_each(|path| policy.allow_reading(&path));
        policy.read_write.push(folder);
        policy
    }

    /// What a confined server's arguments name and it is not shown all the same.
    pub(crate) fn withheld(&self) -> Vec<PathBuf> {
        if !self.definition.sandbox {
            return Vec::new();
        }
        let own = self.settings.data_directory.join(&self.name);
        self.named_places().filter(|path| !path.starts_with(&own) && self.is_closed(path)).collect()
    }

    fn named_places(&self) -> impl Iterator<Item = PathBuf> {
        let named = self.definition.args.iter().map(PathBuf::from).filter(|path| path.is_absolute() && path.exists());
        // The whole file system is no argument of a confined server.
        named.filter(|path| path.components().count() > 2)
    }

    fn is_closed(&self, path: &Path) -> bool {
        is_closed(path, &self.settings.skillz_home, self.settings.user_home.as_deref())
    }
}

/// Whether a place is, holds or lies in the data folder, or is or holds the user's home; wherever links lead.
fn is_closed(path: &Path, skillz_home: &Path, user_home: Option<&Path>) -> bool {
    let both = |path: &Path| [path.to_owned(), path.canonicalize().unwrap_or_else(|_| path.to_owned())];
    let (paths, skillz_homes) = (both(path), both(skillz_home));
    let user_homes: Vec<PathBuf> = user_home.into_iter().flat_map(both).collect();
    paths.iter().any(|path| {
        skillz_homes.iter().any(|home| path.starts_with(home) || home.starts_with(path))
            || user_homes.iter().any(|home| home.starts_with(path))
    })
}

fn unusable(error: ToolError) -> RequestError {
    RequestError::Link(LinkError::Over(match error.hint {
        Some(hint) => format!("{}. {hint}", error.message),
        None => error.message,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_and_the_whole_home_are_closed_also_behind_links() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        for folder in ["user/data/servers/x", "user/work", "other"] {
            std::fs::create_dir_all(root.join(folder)).expect("a folder");
        }
        std::os::unix::fs::symlink(root.join("user/data/servers"), root.join("other/link")).expect("a link");
        let (data, user) = (root.join("user/data"), root.join("user"));
        for (path, expected) in [
            ("user/data", true),
            ("user/data/servers/x", true),
            ("user", true),
            ("", true),
            ("other/link", true),
            ("user/work", false),
            ("user/data2", false),
            ("other", false),
        ] {
            assert_eq!(is_closed(&root.join(path), &data, Some(&user)), expected, "{path}");
        }
        assert!(!is_closed(&root.join("other"), &data, None) && is_closed(&user, &data, None));
    }
}
