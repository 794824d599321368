//! Runs one step of an install: confined, with the network, with the installer's own variables, its output kept.

use std::{
    ffi::OsString,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use skillz_process::{Command, Exit, Keep, Launcher, ProcessLimits, drain};
use skillz_sandbox::Policy;

use crate::{EnvironmentError, InstallRequest, explain};

/// Longest time for one step; installers give up on a dead network sooner.
const STEP_TIME: Duration = Duration::from_mins(15);
/// How much of the output is kept: an error stands at its end, a resolved set of packages is all of it.
const OUTPUT_LENGTH: usize = 8 << 20;
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What every step of one install has in common.
pub(crate) struct Installer<'a> {
    pub(crate) launcher: &'a Launcher,
    pub(crate) request: InstallRequest<'a>,
    /// Variables of the server's environment that are for installers.
    pub(crate) variables: &'a [(String, String)],
    /// Caches of downloads; kept apart where packages may run code.
    pub(crate) cache: PathBuf,
}

/// One program to run.
pub(crate) struct Step<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: Vec<OsString>,
    /// Working folder and home, writable.
    pub(crate) folder: &'a Path,
    /// Further folders that are written.
    pub(crate) writes: Vec<PathBuf>,
    pub(crate) network: bool,
}

impl Installer<'_> {
    /// Runs a step to its end; gives what it printed. An exit code other than 0 is an error with cause and fix.
    pub(crate) async fn run(&self, step: Step<'_>) -> Result<String, EnvironmentError> {
        let (exit, stdout, stderr) = self.run_raw(step).await?;
        match exit {
            Exit::Code(0) => Ok(stdout),
            exit => Err(explain::failure(&self.request, exit, &stdout, &stderr)),
        }
    }

    /// Runs a step to its end, whatever the end is.
    pub(crate) async fn run_raw(&self, step: Step<'_>) -> Result<(Exit, String, String), EnvironmentError> {
        let mut child = self.launcher.spawn(self.command(step)).await?;
        drop(child.stdin.take());
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        let read = async |stream: Option<Box<dyn skillz_process::ChildOutput>>| match stream {
            Some(stream) => drain(stream, Keep::Tail(OUTPUT_LENGTH), None).await.map(|drained| drained.bytes).unwrap_or_default(),
            None => Vec::new(),
        };
        let whole = async {
            let (exit, stdout, stderr) = tokio::join!(child.wait(), read(stdout), read(stderr));
            exit.map(|exit| (exit, stdout, stderr))
        };
        let Ok(ended) = tokio::time::timeout(STEP_TIME, whole).await else {
            return Err(EnvironmentError::Install {
                cause: format!("The installer was ended after {} minutes", STEP_TIME.as_secs() / 60),
                fix: "Look at the network, and try again".to_owned(),
                output: String::new(),
            });
        };
        let (exit, stdout, stderr) = ended?;
        Ok((exit, String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned()))
    }

    fn command(&self, step: Step<'_>) -> Command {
        let request = &self.request;
        let mut policy = Policy { network: step.network, ..Policy::default() };
        let programs = [Some(request.interpreter), request.installer];
        programs.into_iter().flatten().flat_map(|program| &program.visible).for_each(|place| policy.allow_reading(place));
        if request.install_scripts {
            policy.allow_reading(request.base);
            let places = request.dependencies.iter().filter(|dependency| dependency.starts_with('/'));
            places.for_each(|place| policy.allow_reading(Path::new(place)));
        }
        // Certificates, configuration files and folders of wheels that variables point to.
        for (_, value) in self.variables {
            let paths = value.split([' ', ':', ',']).map(Path::new).filter(|path| is_plain(path) && path.exists());
            paths.for_each(|path| policy.allow_reading(path));
        }
        policy.read_write = vec![step.folder.to_path_buf(), self.cache.clone()];
        policy.read_write.extend(step.writes);
        Command {
            program: step.program.to_path_buf(),
            arguments: step.arguments,
            environment: self.environment(step.folder),
            directory: step.folder.to_path_buf(),
            policy: Some(policy),
            limits: ProcessLimits { memory_bytes: Some(4 << 30), max_processes: Some(512), max_file_bytes: None },
        }
    }

    fn environment(&self, home: &Path) -> Vec<(OsString, OsString)> {
        let mut path = OsString::new();
        for folder in [Some(self.request.interpreter), self.request.installer]
            .into_iter()
            .flatten()
            .filter_map(|program| program.path.parent())
        {
            path.push(folder);
            path.push(":");
        }
        path.push(SYSTEM_PATH);
        let mut variables: Vec<(OsString, OsString)> =
            self.variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        // Ours come last and win: where caches lie and what may be asked is not the user's configuration's business.
        for (name, value) in [
            ("PATH", path),
            ("HOME", home.into()),
            ("TMPDIR", home.into()),
            ("LANG", "C.UTF-8".into()),
            ("LC_ALL", "C.UTF-8".into()),
            ("UV_CACHE_DIR", self.cache.join("uv").into()),
            ("UV_PYTHON_DOWNLOADS", "never".into()),
            ("UV_NO_PROGRESS", "1".into()),
            ("PIP_CACHE_DIR", self.cache.join("pip").into()),
            ("PIP_NO_INPUT", "1".into()),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1".into()),
            ("PIP_ROOT_USER_ACTION", "ignore".into()),
            ("PIP_NO_COLOR", "1".into()),
            ("PYTHONNOUSERSITE", "1".into()),
            ("npm_config_cache", self.cache.join("npm").into()),
            ("npm_config_update_notifier", "false".into()),
            ("NO_COLOR", "1".into()),
        ] {
            let name = OsString::from(name);
            variables.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            variables.push((name, value));
        }
        variables
    }
}

/// Whether a path is absolute, below the root, and without `..`.
fn is_plain(path: &Path) -> bool {
    path.is_absolute() && path.components().count() > 1 && path.components().all(|part| part != Component::ParentDir)
}
