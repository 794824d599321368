//! Environments in a home of their own, with an index that lies beside the tests.
#![allow(unreachable_pub, reason = "shared by the tests of this folder")]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use skillz_environments::{
    Environment, EnvironmentError, EnvironmentSettings, Environments, InstallRequest, Language, Program, is_installer_variable,
};
use skillz_process::{Command, Keep, Launcher, ProcessLimits, drain};
use skillz_sandbox::SandboxKind;
use tempfile::TempDir;

pub struct Bench {
    pub home: TempDir,
    pub environments: Environments,
    launcher: Launcher,
    _registry: Registry,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

impl Bench {
    pub fn new() -> Self {
        Self::with_variables(&[])
    }

    pub fn with_variables(more: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let launcher = Launcher::new(std::env::current_exe().unwrap(), SandboxKind::None);
        let registry = Registry::start();
        let simple = format!("{}simple/", registry.url);
        let mut variables = vec![
            ("PIP_INDEX_URL".to_owned(), simple.clone()),
            ("UV_DEFAULT_INDEX".to_owned(), simple),
            ("NPM_CONFIG_REGISTRY".to_owned(), registry.url.clone()),
        ];
        for (name, value) in more {
            variables.retain(|(known, _)| known != name);
            variables.push(((*name).to_owned(), (*value).to_owned()));
        }
        let environments = Self::environments(&home, &launcher, variables);
        Self { home, environments, launcher, _registry: registry }
    }

    fn environments(home: &TempDir, launcher: &Launcher, variables: Vec<(String, String)>) -> Environments {
        Environments::new(EnvironmentSettings {
            directory: home.path().join("envs"),
            cache_directory: home.path().join("cache"),
            launcher: launcher.clone(),
            variables,
        })
    }

    pub async fn ensure(
        &self,
        language: Language,
        installer: Option<&Program>,
        dependencies: &[&str],
        lock: Option<&str>,
    ) -> Result<Environment, EnvironmentError> {
        self.request(&self.environments, &interpreter(language), language, installer, dependencies, lock, false).await
    }

    pub async fn ensure_with_scripts(
        &self,
        language: Language,
        installer: Option<&Program>,
        dependencies: &[&str],
    ) -> Result<Environment, EnvironmentError> {
        self.request(&self.environments, &interpreter(language), language, installer, dependencies, None, true).await
    }

    pub async fn ensure_by(&self, python: &Program, dependencies: &[&str]) -> Result<Environment, EnvironmentError> {
        self.request(&self.environments, python, Language::Python, None, dependencies, None, false).await
    }

    #[expect(clippy::too_many_arguments, reason = "the request's fields, for the three short forms above")]
    async fn request(
        &self,
        environments: &Environments,
        interpreter: &Program,
        language: Language,
        installer: Option<&Program>,
        dependencies: &[&str],
        lock: Option<&str>,
        install_scripts: bool,
    ) -> Result<Environment, EnvironmentError> {
        let dependencies: Vec<String> = dependencies.iter().map(|dependency| (*dependency).to_owned()).collect();
        let request = InstallRequest {
            language,
            interpreter,
            installer,
            dependencies: &dependencies,
            lock,
            install_scripts,
            base: self.home.path(),
            progress: &|_| {},
        };
        environments.ensure(request).await
    }

    /// uv as it is on this machine, or else installed from the public index by pip.
    pub async fn uv(&self) -> Program {
        if let Some(path) = on_path("uv") {
            return Program { path, visible: Vec::new() };
        }
        let variables = std::env::vars().filter(|(name, _)| is_installer_variable(name)).collect();
        let public = Self::environments(&self.home, &self.launcher, variables);
        let environment =
            self.request(&public, &interpreter(Language::Python), Language::Python, None, &["uv"], None, false).await.unwrap();
        let path = self.home.path().join("uv");
        fs::copy(environment.directory.join("bin/uv"), &path).unwrap();
        self.environments.remove(&environment.hash).unwrap();
        Program { path, visible: Vec::new() }
    }

    pub fn npm() -> Program {
        Program { path: on_path("npm").expect("the tests need npm"), visible: Vec::new() }
    }

    /// A Python that knows neither pip nor ensurepip, as on a bare Debian.
    pub fn bare_python(&self) -> Program {
        let hooks = self.home.path().join("hooks");
        fs::create_dir_all(&hooks).unwrap();
        let hook = "import sys\nclass Missing:\n    def find_spec(self, name, *_):\n        if name.split('.')[0] in ('pip', 'ensurepip', 'venv'):\n            \
                    raise ModuleNotFoundError('No module named ' + name)\nsys.meta_path.insert(0, Missing())\n\
                    import importlib.util\nfind = importlib.util.find_spec\n\
                    importlib.util.find_spec = lambda name, *rest: None if name == 'pip' else find(name, *rest)\n";
        fs::write(hooks.join("sitecustomize.py"), hook).unwrap();
        let path = self.home.path().join("python3");
        let real = interpreter(Language::Python).path;
        fs::write(&path, format!("#!/bin/sh\nPYTHONPATH={} exec {} \"$@\"\n", hooks.display(), real.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Program { path, visible: Vec::new() }
    }

    pub async fn python(&self, environment: &Environment, code: &str) -> String {
        self.run(environment.program.as_ref().unwrap(), &["-c", code]).await
    }

    pub async fn run(&self, program: &Path, arguments: &[&str]) -> String {
        let command = Command {
            program: program.to_path_buf(),
            arguments: arguments.iter().map(Into::into).collect(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            directory: self.home.path().to_path_buf(),
            policy: None,
            limits: ProcessLimits::default(),
        };
        let mut child = self.launcher.spawn(command).await.unwrap();
        let output = drain(child.stdout.take().unwrap(), Keep::Tail(10_000), None).await.unwrap();
        let errors = drain(child.stderr.take().unwrap(), Keep::Tail(10_000), None).await.unwrap();
        assert!(child.wait().await.unwrap().success(), "{}", String::from_utf8_lossy(&errors.bytes));
        String::from_utf8(output.bytes).unwrap()
    }

    /// The names of all environments.
    pub fn hashes(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| name.len() == 32).collect()
    }

    /// What lies beside the environments and is no lock.
    pub fn leftovers(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| name.len() != 32 && name != ".locks").collect()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.environments.directory()).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }
}

fn interpreter(language: Language) -> Program {
    let path = match language {
        Language::Python => "/usr/bin/python3".into(),
        Language::Node => on_path("node").expect("the tests need node"),
    };
    Program { path, visible: Vec::new() }
}

fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// A package index for pip and npm on this machine.
struct Registry {
    url: String,
}

impl Registry {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let base = url.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let base = base.clone();
                std::thread::spawn(move || serve(stream, &base));
            }
        });
        Self { url }
    }
}

fn serve(mut stream: std::net::TcpStream, base: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut request = String::new();
    if reader.read_line(&mut request).is_err() {
        return;
    }
    let mut header = String::new();
    while reader.read_line(&mut header).is_ok_and(|count| count > 2) {
        header.clear();
    }
    let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
    let (status, kind, body) = answer(&path, base);
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}

fn answer(path: &str, base: &str) -> (&'static str, &'static str, Vec<u8>) {
    if path == "fixture-left" {
        let version = |version: &str| {
            format!(
                r#""{version}":{{"name":"fixture-left","version":"{version}","hasInstallScript":true,"dist":{{"tarball":"{base}fixture-left-{version}.tgz"}}}}"#
            )
        };
        let body = format!(
            r#"{{"name":"fixture-left","dist-tags":{{"latest":"2.0.0"}},"versions":{{{},{}}}}}"#,
            version("1.0.0"),
            version("2.0.0")
        );
        return ("200 OK", "application/json", body.into_bytes());
    }
    if let Some(project) = path.strip_prefix("simple/") {
        let links = simple_links(project.trim_end_matches('/'));
        let status = if links.is_empty() { "404 Not Found" } else { "200 OK" };
        return (status, "text/html", links.into_bytes());
    }
    match fs::read(fixtures().join(path)) {
        Ok(bytes) if [".tgz", ".whl", ".tar.gz"].iter().any(|suffix| path.ends_with(suffix)) => {
            ("200 OK", "application/octet-stream", bytes)
        }
        _ => ("404 Not Found", "application/json", br#"{"error":"Not found"}"#.to_vec()),
    }
}

/// The page of one project in a simple index.
fn simple_links(project: &str) -> String {
    let prefix = format!("{}-", project.replace('-', "_"));
    let mut names: Vec<String> =
        fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.starts_with(&prefix) && Path::new(name).extension().is_none_or(|extension| extension != "tgz"));
    let link = |name: &String| {
        let digest = Sha256::digest(fs::read(fixtures().join(name)).unwrap());
        format!("<a href=\"/{name}#sha256={digest:x}\">{name}</a>\n")
    };
    names.iter().map(link).collect()
}
