//! Installs what scripts depend on: pip requirements and npm packages, locked, in shared read-only folders.
//!
//! A set of dependencies becomes `envs/<hash of language, interpreter version and lock>`, built aside and renamed
//! when it is whole, so that a half-made environment is never seen. Interpreters and installers are given; nothing
//! here looks for programs or reads the environment. Processes are started through `skillz-process` only.
#![warn(missing_docs)]

mod error;
mod explain;
mod folder;
mod inline;
mod installer;
mod lock;
mod node;
mod python;
mod request;
mod requirement;
mod specifier;
mod tag;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Once},
};

use skillz_process::Launcher;

pub use error::EnvironmentError;
pub use inline::{InlineMetadata, inline_metadata};
pub use request::{Environment, InstallRequest, Language, Program, UnusedEnvironment};

use crate::{folder::Staging, installer::Installer, lock::BuildLock};

/// Where environments lie and how they are made. Values of variables never show in `Debug` output.
#[derive(Clone)]
pub struct EnvironmentSettings {
    /// The folder of all environments (`$SKILLZ_HOME/envs`); made at the first install.
    pub directory: PathBuf,
    /// Caches of the installers (`$SKILLZ_HOME/cache`); may be deleted at any time.
    pub cache_directory: PathBuf,
    /// Starts the installers.
    pub launcher: Launcher,
    /// Variables that only installers see: indexes, proxies, certificates (see [`is_installer_variable`]).
    pub variables: Vec<(String, String)>,
}

impl fmt::Debug for EnvironmentSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.variables.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("EnvironmentSettings")
            .field("directory", &self.directory)
            .field("variables", &names)
            .finish_non_exhaustive()
    }
}

/// An environment that nobody finds any more. Its files go when it is dropped.
#[must_use = "its files go as soon as it is dropped"]
pub struct RemovedEnvironment(#[expect(dead_code, reason = "held for what its end does")] folder::Staging);

/// Makes, finds and removes environments. Cheap to clone; clones share what was found out.
#[derive(Debug, Clone)]
pub struct Environments {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: EnvironmentSettings,
    interpreters: tag::Interpreters,
    swept: Once,
}

impl Environments {
    /// Touches no file yet.
    pub fn new(settings: EnvironmentSettings) -> Self {
        Self { shared: Arc::new(Shared { settings, interpreters: tag::Interpreters::default(), swept: Once::new() }) }
    }

    /// The folder of all environments.
    pub fn directory(&self) -> &Path {
        &self.shared.settings.directory
    }

    /// Whether an environment looks as it was made. Cheap: asked before each call.
    pub fn is_whole(&self, environment: &Environment) -> bool {
        folder::is_unchanged(environment)
    }

    /// Whether every file of an environment is still there, at its size. Asked when a call failed to import something.
    pub fn is_intact(&self, environment: &Environment) -> bool {
        folder::open(self.directory(), &environment.hash, &environment.lock).is_some()
    }

    /// Gives the environment that holds the dependencies, after making it if it is not there or damaged.
    ///
    /// May be called by many at once: one builds, the others wait and find it. Dropping the future ends the installer and
    /// leaves nothing behind.
    pub async fn ensure(&self, request: InstallRequest<'_>) -> Result<Environment, EnvironmentError> {
        let dependencies = specifier::check(request.language, request.dependencies, request.install_scripts)?;
        let request = InstallRequest { dependencies: &dependencies, ..request };
        let (installer, base) = self.installer(request)?;
        let base = &base;
        let aside = Staging::create(base)?;
        let interpreter = self.shared.interpreters.get(&installer, aside.path()).await?;
        let given = request.lock.filter(|lock| lock::is_of(request.language, lock, &dependencies));
        if let Some(environment) = given.and_then(|lock| self.open(request.language, &interpreter.tag, lock)) {
            return Ok(environment);
        }
        let key =
            lock::digest(&[&request.language.to_string(), &interpreter.tag, given.unwrap_or_default(), &dependencies.join("\n")]);
        let _lock = BuildLock::acquire(&base.join(".locks").join(key)).await?;
        self.build(&installer, &interpreter, given, aside, base).await
    }

    /// Refuses a Python that is none of the versions that a script's `requires-python` asks for.
    pub async fn check_python(&self, request: InstallRequest<'_>, required: &str) -> Result<(), EnvironmentError> {
        let (installer, base) = self.installer(request)?;
        let aside = Staging::create(&base)?;
        let found = self.shared.interpreters.get(&installer, aside.path()).await?.version;
        if inline::satisfies(&found, required) == Some(true) {
            return Ok(());
        }
        let program = request.interpreter.path.display().to_string();
        Err(EnvironmentError::PythonVersion { required: required.to_owned(), found, program })
    }

    /// What installs, and the folder of all environments by its real path; folders are made.
    fn installer<'a>(&'a self, request: InstallRequest<'a>) -> Result<(Installer<'a>, PathBuf), EnvironmentError> {
        let base = self.directory();
        let cache = self.shared.settings.cache_directory.join(if request.install_scripts {
            "installers-with-scripts"
        } else {
            "installers"
        });
        for folder in [base, &base.join(".locks"), &cache] {
            fs::create_dir_all(folder).map_err(EnvironmentError::files(format!("The folder `{}`", folder.display())))?;
        }
        // A sandbox shows writable folders at their real paths only.
        let real =
            |folder: &Path| folder.canonicalize().map_err(EnvironmentError::files(format!("The folder `{}`", folder.display())));
        let (base, cache) = (real(base)?, real(&cache)?);
        self.shared.swept.call_once(|| folder::sweep(&base));
        let (launcher, variables) = (&self.shared.settings.launcher, &self.shared.settings.variables);
        Ok((Installer { launcher, request, variables, cache }, base))
    }

    async fn build(
        &self,
        installer: &Installer<'_>,
        interpreter: &tag::Interpreter,
        given: Option<&str>,
        staging: Staging,
        base: &Path,
    ) -> Result<Environment, EnvironmentError> {
        let language = installer.request.language;
        let resolved = match (given, language) {
            (Some(lock), _) => Some(lock.to_owned()),
            (None, Language::Python) => python::resolve(installer, staging.path()).await?,
            (None, Language::Node) => None,
        };
        // Somebody else may have been first, or another tool may have the same set.
        if let Some(environment) = resolved.as_deref().and_then(|lock| self.open(language, &interpreter.tag, lock)) {
            return Ok(environment);
        }
        let made = match language {
            Language::Python => python::build(installer, interpreter, resolved.as_deref(), staging.path()).await?,
            Language::Node => node::build(installer, resolved.as_deref(), staging.path()).await?,
        };
        if let Some(environment) = self.open(language, &interpreter.tag, &made.lock) {
            return Ok(environment);
        }
        let hash = lock::environment_hash(language, &interpreter.tag, &made.lock);
        if language == Language::Python {
            python::move_scripts(staging.path(), &base.join(&hash), interpreter)
                .map_err(EnvironmentError::files("The environment"))?;
        }
        let environment = staging.publish(base, &hash, &made)?;
        tracing::info!(%language, hash, "an environment was made");
        Ok(environment)
    }

    fn open(&self, language: Language, tag: &str, lock: &str) -> Option<Environment> {
        folder::open(self.directory(), &lock::environment_hash(language, tag, lock), lock)
    }

    /// Environments that none of these locks (the texts of all tools' `lock` files) needs, and those that cannot be used.
    pub fn unused(&self, locks: &[String]) -> io::Result<Vec<UnusedEnvironment>> {
        let needed: Vec<String> = locks.iter().map(|lock| lock::digest(&[lock])).collect();
        let unused = folder::list(self.directory())?
            .into_iter()
            .filter(|(_, _, digest)| !digest.as_ref().is_some_and(|digest| needed.contains(digest)));
        Ok(unused
            .map(|(hash, directory, _)| UnusedEnvironment { size_bytes: folder::size(&directory), hash, directory })
            .collect())
    }

    /// Hashes of the environments that were made for this lock, unless one of the `others` (texts of `lock` files) is the same.
    pub fn only_for(&self, lock: &str, others: &[String]) -> io::Result<Vec<String>> {
        if others.iter().any(|other| other == lock) {
            return Ok(Vec::new());
        }
        let wanted = lock::digest(&[lock]);
        let all = folder::list(self.directory())?.into_iter();
        Ok(all.filter(|(_, _, digest)| digest.as_ref() == Some(&wanted)).map(|(hash, _, _)| hash).collect())
    }

    /// Removes an environment by its hash.
    pub fn remove(&self, hash: &str) -> io::Result<()> {
        self.take_away(hash).map(drop)
    }

    /// Takes an environment out of sight by its hash, at once; its files, which may be many, go when what this gives is
    /// dropped.
    pub fn take_away(&self, hash: &str) -> io::Result<RemovedEnvironment> {
        folder::take_away(self.directory(), hash).map(RemovedEnvironment)
    }
}

/// Whether a variable of the server's environment is for installers: `PIP_*`, `UV_*`, `NPM_CONFIG_*`, proxies and
/// certificates.
pub fn is_installer_variable(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    ["PIP_", "UV_", "NPM_CONFIG_"].iter().any(|prefix| upper.starts_with(prefix))
        || matches!(
            upper.as_str(),
            "HTTP_PROXY"
                | "HTTPS_PROXY"
                | "ALL_PROXY"
                | "NO_PROXY"
                | "SSL_CERT_FILE"
                | "SSL_CERT_DIR"
                | "NODE_EXTRA_CA_CERTS"
                | "REQUESTS_CA_BUNDLE"
                | "CURL_CA_BUNDLE"
        )
}
