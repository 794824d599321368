//! The same view of the system as the built-in sandbox gives, made by the program `bwrap`.
//!
//! Its options go through a file of their own: a command line is there for everybody to read, and the environment in it
//! may hold secrets. Folders of the policy are handed over opened, so that nobody can put others in their place.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{Seek, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::{
    Policy,
    builtin::{
        SandboxError,
        error::Context,
        mounts::Access,
        seccomp::Filter,
        sources::{self, Source},
        system::{Entries, Entry, NETWORK_SETTINGS},
    },
};

/// Where the program is looked for.
const FOLDERS: [&str; 4] = ["/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin"];

/// User and group inside, where the server is root.
const NOBODY: u32 = 65534;

/// Largest size of `/tmp`: a gigabyte.
const TEMPORARY_BYTES: &str = "1073741824";

/// The program to be confined.
#[derive(Debug, Clone, Copy)]
pub struct Inner<'command> {
    /// Its absolute path.
    pub program: &'command Path,
    /// Its arguments.
    pub arguments: &'command [OsString],
    /// Its whole environment.
    pub environment: &'command [(OsString, OsString)],
    /// Its working folder.
    pub directory: &'command Path,
}

/// How to run `bwrap`: without an environment of its own, since what it confines can read that.
#[derive(Debug)]
pub struct Wrapped {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Descriptors that it must find open, from [`Wrapped::FIRST_DESCRIPTOR`] on, in this order.
    pub descriptors: Vec<OwnedFd>,
}

impl Wrapped {
    /// The number of the first of its descriptors.
    pub const FIRST_DESCRIPTOR: i32 = 3;
}

/// Finds the program.
pub fn find() -> Result<PathBuf, SandboxError> {
    let found = FOLDERS.iter().map(|folder| Path::new(folder).join("bwrap")).find(|path| path.is_file());
    found.ok_or_else(|| SandboxError::Missing { searched: FOLDERS.map(|folder| format!("`{folder}`")).join(", ") })
}

/// Wraps a program so that it runs confined.
pub fn wrap(policy: &Policy, inner: Inner<'_>) -> Result<Wrapped, SandboxError> {
    let program = find()?;
    // The first descriptor is for the options themselves, which are known last.
    let mut options = Options { words: Vec::new(), descriptors: Vec::new() };
    options.isolate(policy);
    options.show_system(policy)?;
    options.show_policy(policy)?;
    options.place(inner);
    let filter = options.data(&Filter::new().bytes())?;
    options.add(["--seccomp", &filter]);

    let text = options.words.iter().flat_map(|word| [word.as_os_str(), OsStr::new("\0")]).collect::<OsString>();
    let text = file_of(std::os::unix::ffi::OsStrExt::as_bytes(text.as_os_str()))?;
    let descriptors = [text].into_iter().chain(options.descriptors).collect();
    let mut arguments: Vec<OsString> = vec!["--args".into(), Wrapped::FIRST_DESCRIPTOR.to_string().into(), "--".into()];
    arguments.push(inner.program.into());
    arguments.extend(inner.arguments.iter().cloned());
    Ok(Wrapped { program, arguments, descriptors })
}

/// The options that go through a file.
struct Options {
    words: Vec<OsString>,
    descriptors: Vec<OwnedFd>,
}

impl Options {
    fn add<const COUNT: usize>(&mut self, words: [&str; COUNT]) {
        self.words.extend(words.map(OsString::from));
    }

    fn add_path(&mut self, option: &str, words: [&OsStr; 2]) {
        self.words.push(option.into());
        self.words.extend(words.map(OsStr::to_owned));
    }

    /// Keeps a descriptor open for the program; gives its number there.
    fn descriptor(&mut self, descriptor: OwnedFd) -> String {
        self.descriptors.push(descriptor);
        let before = i32::try_from(self.descriptors.len()).unwrap_or(i32::MAX);
        (Wrapped::FIRST_DESCRIPTOR + before).to_string()
    }

    /// Hands over data as a file.
    fn data(&mut self, content: &[u8]) -> Result<String, SandboxError> {
        Ok(self.descriptor(file_of(content)?))
    }

    fn isolate(&mut self, policy: &Policy) {
        self.add(["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--clearenv"]);
        self.add(["--disable-userns", "--cap-drop", "ALL", "--hostname", "sandbox"]);
        if policy.network {
            self.add(["--share-net"]);
        }
        if rustix::process::geteuid().is_root() {
            let nobody = NOBODY.to_string();
            self.add(["--uid", &nobody, "--gid", &nobody]);
        }
    }

    fn show_system(&mut self, policy: &Policy) -> Result<(), SandboxError> {
        let mut entries = Entries::default();
        entries.refresh();
        for entry in entries.list() {
            match entry {
                Entry::Real(path) => self.add_path("--ro-bind-try", [path.as_os_str(), path.as_os_str()]),
                Entry::Link { path, target } => self.add_path("--symlink", [target.as_os_str(), path.as_os_str()]),
            }
        }
        if policy.network {
            for path in NETWORK_SETTINGS {
                self.add(["--ro-bind-try", path, path]);
            }
        } else {
            let hosts = self.data(b"127.0.0.1 localhost sandbox\n::1 localhost sandbox\n")?;
            self.add(["--ro-bind-data", &hosts, "/etc/hosts"]);
        }
        self.add(["--proc", "/proc", "--remount-ro", "/proc"]);
        self.add(["--dev", "/dev", "--size", TEMPORARY_BYTES, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]);
        self.add(["--size", TEMPORARY_BYTES, "--tmpfs", "/tmp"]);
        self.add(["--dir", "/run", "--symlink", "/tmp", "/var/tmp", "--symlink", "/run", "/var/run"]);
        Ok(())
    }

    fn show_policy(&mut self, policy: &Policy) -> Result<(), SandboxError> {
        for source in sources::open_all(policy, &[])? {
            match source {
                Source::Link { path, target } => self.add_path("--symlink", [target.as_os_str(), path.as_os_str()]),
                Source::Real { path, descriptor, access, .. } => {
                    let number = self.descriptor(descriptor);
                    let option = if access == Access::ReadWrite { "--bind-fd" } else { "--ro-bind-fd" };
                    self.add_path(option, [OsStr::new(&number), path.as_os_str()]);
                }
            }
        }
        self.add(["--remount-ro", "/"]);
        Ok(())
    }

    fn place(&mut self, inner: Inner<'_>) {
        for (name, value) in inner.environment {
            self.add_path("--setenv", [name, value]);
        }
        self.words.push("--chdir".into());
        self.words.push(inner.directory.into());
    }
}

/// A file in memory, to be read from its start.
fn file_of(content: &[u8]) -> Result<OwnedFd, SandboxError> {
    let descriptor = memfd_create("sandbox", MemfdFlags::CLOEXEC).context("make a file in memory")?;
    let mut file = File::from(descriptor);
    file.write_all(content).and_then(|()| file.rewind()).context("write a file in memory")?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn options_are_out_of_sight_and_name_what_the_policy_lists() {
        if find().is_err() {
            assert!(find().expect_err("it is missing").to_string().contains("apt install bubblewrap"));
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("it is there");
        let policy = Policy { read_write: vec![folder.clone()], ..Policy::default() };
        let environment = [("SECRET".into(), "value".into())];
        let inner =
            Inner { program: Path::new("/bin/echo"), arguments: &["a".into()], environment: &environment, directory: &folder };
        let wrapped = wrap(&policy, inner).expect("it can be wrapped");
        assert_eq!(wrapped.arguments, ["--args", "3", "--", "/bin/echo", "a"]);
        let mut descriptors = wrapped.descriptors.into_iter();
        let mut options = String::new();
        File::from(descriptors.next().expect("the options")).read_to_string(&mut options).expect("text");
        let words: Vec<&str> = options.split('\0').collect();
        let has = |wanted: &[&str]| words.windows(wanted.len()).any(|words| words == wanted);
        assert!(has(&["--setenv", "SECRET", "value"]) && has(&["--unshare-all"]) && !has(&["--share-net"]), "{words:?}");
        let path = folder.to_str().expect("plain");
        assert!(has(&["--bind-fd", "5", path]) && has(&["--chdir", path]), "{words:?}");
        // The names of hosts, the folder, the filter.
        assert_eq!(descriptors.count(), 3);
    }

    #[test]
    fn writable_links_are_refused_here_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().canonicalize().expect("it is there").join("link");
        std::os::unix::fs::symlink("/etc", &link).expect("linked");
        let policy = Policy { read_write: vec![link], ..Policy::default() };
        let inner = Inner { program: Path::new("/bin/true"), arguments: &[], environment: &[], directory: Path::new("/") };
        assert!(wrap(&policy, inner).is_err());
    }
}
