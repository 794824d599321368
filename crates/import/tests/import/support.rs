//! A workshop of one test: a folder for everything, an importer, git repositories and servers that end with it.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
};

use skillz_import::{ImportSettings, Importer};
use skillz_process::Launcher;
use skillz_sandbox::SandboxKind;
use skillz_tool::{FetchRequest, Fetched, SourceFetcher, ToolError};
use tempfile::TempDir;

/// A manifest and a source that make a tool.
pub(crate) const MANIFEST: &str =
    r#"{"name": "greet", "description": "Greets.", "tool_type": "script", "interpreter": "bash", "entry_file": "main.sh"}"#;

pub(crate) struct Workshop {
    folder: TempDir,
    importer: Importer,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        Self::with_api("http://127.0.0.1:1")
    }

    pub(crate) fn with_api(github_api: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("skillz-import-").tempdir().unwrap();
        for name in ["home", "work"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let importer = Importer::new(ImportSettings {
            scratch: folder.path().join("cache/imports"),
            launcher: Launcher::new(std::env::current_exe().unwrap(), SandboxKind::None),
            search_path: std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect(),
            user_home: Some(folder.path().join("home")),
            working_directory: folder.path().join("work"),
            variables: Vec::new(),
            github_api: github_api.to_owned(),
        });
        Self { folder, importer }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) async fn fetch(&self, source: &str) -> Result<Fetched, ToolError> {
        self.request(FetchRequest { source: source.to_owned(), ..FetchRequest::default() }).await
    }

    pub(crate) async fn fetch_part(
        &self,
        source: &str,
        reference: Option<&str>,
        path: Option<&str>,
    ) -> Result<Fetched, ToolError> {
        let (reference, path) = (reference.map(str::to_owned), path.map(str::to_owned));
        self.request(FetchRequest { source: source.to_owned(), reference, path, allowed_folders: None }).await
    }

    pub(crate) async fn request(&self, request: FetchRequest) -> Result<Fetched, ToolError> {
        self.importer.fetch(request, Arc::new(|_: &str| {})).await
    }

    /// What fetches have left behind.
    pub(crate) fn has_scratch(&self) -> bool {
        self.path("cache").exists()
    }

    /// Everything below the workshop, to be compared with what is there later.
    pub(crate) fn everything(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found.sort();
        found
    }

    /// A repository with a working tree.
    pub(crate) fn repository(&self, name: &str) -> Repository {
        let folder = self.path("repositories").join(name);
        fs::create_dir_all(&folder).unwrap();
        let repository = Repository { folder };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    /// The web server of `server.py`, over the repositories and the folder `files`.
    pub(crate) fn serve(&self) -> WebServer {
        for name in ["repositories", "files"] {
            fs::create_dir_all(self.path(name)).unwrap();
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/server.py");
        let mut process = Command::new("python3")
            .arg(script)
            .args([self.path("repositories"), self.path("files")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 starts");
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        WebServer { address: format!("http://127.0.0.1:{}", port.trim()), process }
    }

    /// `git daemon` over the repositories, one for each connection as a super-server starts it.
    pub(crate) fn serve_git(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("git://{}", listener.local_addr().unwrap());
        let base = self.path("repositories");
        // Ends with the test's process; it is the listener that the tests talk to.
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let output = connection.try_clone().unwrap();
                let started = Command::new("git")
                    .args(["daemon", "--inetd", "--export-all"])
                    .arg(format!("--base-path={}", base.display()))
                    .stdin(Stdio::from(OwnedFd::from(connection)))
                    .stdout(Stdio::from(OwnedFd::from(output)))
                    .stderr(Stdio::null())
                    .spawn();
                if let Ok(mut daemon) = started {
                    thread::spawn(move || daemon.wait());
                }
            }
        });
        address
    }
}

/// A web server; ends when dropped.
pub(crate) struct WebServer {
    pub(crate) address: String,
    process: Child,
}

impl Drop for WebServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) struct Repository {
    pub(crate) folder: PathBuf,
}

impl Repository {
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(&self.folder)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .envs([
                ("GIT_AUTHOR_NAME", "a"),
                ("GIT_AUTHOR_EMAIL", "a@b"),
                ("GIT_COMMITTER_NAME", "a"),
                ("GIT_COMMITTER_EMAIL", "a@b"),
            ])
            .output()
            .expect("git starts");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path).unwrap().write_all(content.as_bytes()).unwrap();
    }

    /// Commits everything; gives the commit.
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }
}

/// A file of what was fetched.
pub(crate) fn read(fetched: &Fetched, name: &str) -> String {
    fs::read_to_string(fetched.directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn provenance<'a>(fetched: &'a Fetched, field: &str) -> &'a str {
    fetched.provenance.get(field).and_then(skillz_json::Value::as_str).unwrap_or_default()
}
