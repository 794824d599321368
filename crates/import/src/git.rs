//! Git repositories, by the git program: a bare repository without hooks and configuration, one commit where the server
//! allows it, and the commit's tree as an archive, so that nothing is ever checked out.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use skillz_json::{Map, Value, json};
use skillz_process::{Command, Exit, Keep, Launcher, ProcessLimits, drain};
use skillz_tool::{ErrorKind, ToolError};

use crate::{
    error::too_large,
    limits,
    source::shown_url,
    unpack::{Links, unpack},
};

/// How much of what git says is kept.
const OUTPUT: usize = 64 << 10;
/// Lines of git's own words in a failure.
const SHOWN_LINES: usize = 8;
/// Wins over whatever attributes the repository brings: files come byte for byte, all of them, and no filter runs.
const ATTRIBUTES: &str = "* -export-ignore -export-subst -text -ident -filter -working-tree-encoding\n";
/// What git may not do, whatever anybody configured.
const CONFIGURATION: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "credential.helper=",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "protocol.http.allow=always",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "protocol.git.allow=always",
    "protocol.file.allow=always",
    "http.followRedirects=initial",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=30",
    // One pack, so that the limit on a file's size is a limit on the whole.
    "fetch.unpackLimit=1",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Runs git for one import.
pub(crate) struct Git<'a> {
    pub(crate) launcher: &'a Launcher,
    /// The git program.
    pub(crate) program: PathBuf,
    /// Folders of `PATH`, for the programs that git starts.
    pub(crate) search_path: &'a [PathBuf],
    /// Proxies, certificates, the agent that holds ssh keys.
    pub(crate) variables: &'a [(OsString, OsString)],
    /// The bare repository, also git's home.
    pub(crate) repository: PathBuf,
}

/// A commit of a repository, as plain files.
pub(crate) struct Checkout {
    pub(crate) provenance: Map<String, Value>,
    /// Links that were left out.
    pub(crate) links: Vec<String>,
}

impl Git<'_> {
    /// Fetches a commit, and writes its tree (or a folder of it) into an empty folder.
    pub(crate) async fn fetch(
        &self,
        url: &str,
        reference: Option<&str>,
        path: Option<&Path>,
        into: &Path,
    ) -> Result<Checkout, ToolError> {
        self.run(&["init", "--quiet", "--bare", "--template=", "."], url).await?;
        let information = self.repository.join("info");
        fs::create_dir_all(&information)
            .and_then(|()| fs::write(information.join("attributes"), ATTRIBUTES))
            .map_err(|error| ToolError::internal(format!("`{}` cannot be written: {error}", information.display())))?;
        let commit = self.fetch_commit(url, reference).await?;
        let tree = match path {
            Some(path) => self.folder_of(&commit, path, url).await?,
            None => commit.clone(),
        };
        self.run(&["archive", "--format=tar", "--output=tree.tar", tree.as_str()], url).await?;
        let archive = self.repository.join("tree.tar");
        let (packed, target) = (archive.clone(), into.to_owned());
        let unpacked = tokio::task::spawn_blocking(move || unpack(&packed, &target, Links::LeaveOut)).await;
        let links = unpacked.map_err(ToolError::internal)?.map_err(|error| {
            ToolError::new(ErrorKind::Denied, format!("The repository `{}` is not imported: {error}", shown_url(url)))
        })?;
        let _ = fs::remove_file(archive);
        let mut provenance = Map::from_iter([("from".to_owned(), json!(shown_url(url))), ("commit".to_owned(), json!(commit))]);
        if let Some(reference) = reference {
            provenance.insert("ref".to_owned(), json!(reference));
        }
        if let Some(path) = path {
            provenance.insert("path".to_owned(), json!(path.to_string_lossy()));
        }
        Ok(Checkout { provenance, links })
    }

    /// Fetches a branch, tag or commit, and gives the commit's full hash.
    async fn fetch_commit(&self, url: &str, reference: Option<&str>) -> Result<String, ToolError> {
        let wanted = reference.unwrap_or("HEAD");
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1", "--", url, wanted];
        let (mut exit, mut said) = self.run_raw(&fetch, url).await?;
        // Old ways of serving cannot give a part of the history.
        if !exit.success() && said.contains("shallow") {
            let whole = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--", url, wanted];
            (exit, said) = self.run_raw(&whole, url).await?;
        }
        let mut found = "FETCH_HEAD^{commit}".to_owned();
        if !exit.success() && is_commit(wanted) && !is_unreachable(&said) {
            // A commit by a short hash, or by one that the server does not give out alone: it is in some branch.
            let everything = [
                "fetch",
                "--quiet",
                "--no-recurse-submodules",
                "--",
                url,
                "+refs/heads/*:refs/heads/*",
                "+refs/tags/*:refs/tags/*",
            ];
            (exit, said) = self.run_raw(&everything, url).await?;
            found = format!("{wanted}^{{commit}}");
        }
        if !exit.success() {
            return Err(self.failure(exit, &said, url, reference));
        }
        let (exit, hash) = self.run_raw(&["rev-parse", "--verify", "--quiet", "--end-of-options", found.as_str()], url).await?;
        let hash = hash.lines().next().unwrap_or_default().trim().to_owned();
        if exit.success() && hash.len() >= 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(hash);
        }
        Err(unknown_reference(url, wanted))
    }

    /// The tree of a folder in a commit.
    async fn folder_of(&self, commit: &str, path: &Path, url: &str) -> Result<String, ToolError> {
        let path = path.to_string_lossy();
        let tree = format!("{commit}:{path}");
        let (exit, kind) = self.run_raw(&["cat-file", "-t", tree.as_str()], url).await?;
        if exit.success() && kind.trim() == "tree" {
            return Ok(tree);
        }
        let what = if exit.success() { "is no folder" } else { "is not there" };
        Err(ToolError::new(ErrorKind::NotFound, format!("`{path}` {what} in `{}` at commit {commit}", shown_url(url)))
            .with_hint("`path` is a folder of the repository, such as `tools/mine`"))
    }

    async fn run(&self, arguments: &[&str], url: &str) -> Result<(), ToolError> {
        let (exit, said) = self.run_raw(arguments, url).await?;
        if exit.success() { Ok(()) } else { Err(self.failure(exit, &said, url, None)) }
    }

    /// Runs git to its end; gives what it said, without secrets.
    async fn run_raw(&self, arguments: &[&str], url: &str) -> Result<(Exit, String), ToolError> {
        let command = self.command(arguments);
        let started = self.launcher.spawn(command).await;
        let mut child = started.map_err(|error| ToolError::new(ErrorKind::Unavailable, format!("git did not start: {error}")))?;
        drop(child.stdin.take());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let read = async |stream: Option<Box<dyn skillz_process::ChildOutput>>| match stream {
            Some(stream) => drain(stream, Keep::Tail(OUTPUT), None).await.map(|drained| drained.bytes).unwrap_or_default(),
            None => Vec::new(),
        };
        let (exit, stdout, stderr) = tokio::join!(child.wait(), read(stdout), read(stderr));
        let exit = exit.map_err(|error| ToolError::internal(format!("git was lost: {error}")))?;
        let mut said = String::from_utf8_lossy(&stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&stderr));
        Ok((exit, scrubbed(&said, url)))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut given: Vec<OsString> = CONFIGURATION.iter().flat_map(|setting| ["-c", setting]).map(OsString::from).collect();
        given.extend(arguments.iter().map(OsString::from));
        Command {
            program: self.program.clone(),
            arguments: given,
            environment: self.environment(),
            directory: self.repository.clone(),
            policy: None,
            limits: ProcessLimits { memory_bytes: None, max_processes: None, max_file_bytes: Some(limits::BYTES) },
        }
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::join_paths(self.search_path).unwrap_or_default();
        let mut environment = self.variables.to_vec();
        if let Some((_, certificates)) = self.variables.iter().find(|(name, _)| name == "SSL_CERT_FILE") {
            environment.push(("GIT_SSL_CAINFO".into(), certificates.clone()));
        }
        let repository = self.repository.clone().into_os_string();
        for (name, value) in [
            ("PATH", path),
            ("HOME", repository.clone()),
            ("XDG_CONFIG_HOME", repository.clone()),
            ("GIT_DIR", repository),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_SYSTEM", "/dev/null".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_ATTR_NOSYSTEM", "1".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("GIT_ASKPASS", "".into()),
            ("SSH_ASKPASS_REQUIRE", "never".into()),
            ("GIT_ALLOW_PROTOCOL", "http:https:ssh:git:file".into()),
            ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes -oConnectTimeout=15 -oPermitLocalCommand=no".into()),
            ("GIT_LFS_SKIP_SMUDGE", "1".into()),
            ("GIT_OPTIONAL_LOCKS", "0".into()),
            ("LC_ALL", "C".into()),
        ] {
            environment.retain(|(known, _)| known != name);
            environment.push((name.into(), value));
        }
        environment
    }

    fn failure(&self, exit: Exit, said: &str, url: &str, reference: Option<&str>) -> ToolError {
        let shown = shown_url(url);
        // 25 is SIGXFSZ: a file was about to become larger than it may.
        if exit == Exit::Signal(25) || said.contains("File too large") || said.contains("signal 25") {
            return too_large(&format!("The repository `{shown}`"));
        }
        if let Some(reference) = reference.filter(|_| said.contains("couldn't find remote ref") || said.contains("not our ref")) {
            return unknown_reference(url, reference);
        }
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let tail = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n");
        let hint = if said.contains("could not read Username") || said.contains("Authentication failed") {
            "It needs a login, and git is not allowed to ask for one here: clone it yourself and import the folder"
        } else {
            "Look at the address; a private repository can be cloned by hand, and the folder imported"
        };
        ToolError::new(ErrorKind::Unavailable, format!("The repository `{shown}` could not be fetched"))
            .with_output(tail)
            .with_hint(hint)
    }
}

fn unknown_reference(url: &str, reference: &str) -> ToolError {
    let message = format!("`{}` has no branch, tag or commit `{reference}`", shown_url(url));
    ToolError::new(ErrorKind::NotFound, message).with_hint("Leave `ref` out for the default branch")
}

fn is_commit(reference: &str) -> bool {
    (4..=64).contains(&reference.len()) && reference.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a second try would fail as the first did.
fn is_unreachable(said: &str) -> bool {
    [
        "unable to access",
        "Could not resolve",
        "unable to connect",
        "does not exist",
        "not appear to be a git repository",
        "terminal prompts disabled",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// What git said, with the address as it may be shown: git repeats it, password and all.
fn scrubbed(said: &str, url: &str) -> String {
    let mut scrubbed = said.replace(url, &shown_url(url));
    if let Some((_, rest)) = url.split_once("://") {
        let authority = rest.split('/').next().unwrap_or_default();
        if let Some((login, _)) = authority.rsplit_once('@') {
            scrubbed = scrubbed.replace(&format!("{login}@"), "");
            if let Some((_, password)) = login.split_once(':').filter(|(_, password)| !password.is_empty()) {
                scrubbed = scrubbed.replace(password, "***");
            }
        }
    }
    scrubbed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_is_told_without_passwords() {
        let url = "https://me:hunter2@h/a.git";
        let said = "fatal: unable to access 'https://me:hunter2@h/a.git/': hunter2 refused";
        assert_eq!(scrubbed(said, url), "fatal: unable to access 'https://h/a.git/': *** refused");
    }

    #[test]
    fn a_short_hash_is_told_from_a_branch() {
        assert!(is_commit("deadbeef") && is_commit(&"a".repeat(40)));
        assert!(!is_commit("main") && !is_commit("abc") && !is_commit("feature/1234"));
    }
}
