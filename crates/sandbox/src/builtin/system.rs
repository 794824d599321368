//! What of the system every confined process sees, read-only: programs, libraries, and the settings that they need to run.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::sources::modified;

/// Folders of programs and libraries.
const FOLDERS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu"];

/// Settings, by their names below `/etc`. None of them holds secrets. `passwd`, `group` and `hosts` are made anew.
const SETTINGS: &[&str] = &[
    // Libraries and certificates (not the private keys beside them).
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld-musl-x86_64.path",
    "ssl/certs",
    "ssl/cert.pem",
    "ssl/openssl.cnf",
    "ca-certificates",
    "ca-certificates.conf",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "pki/tls/openssl.cnf",
    "pki/ca-trust",
    "crypto-policies",
    "gnutls",
    // Names, places, formats.
    "alternatives",
    "localtime",
    "timezone",
    "locale.alias",
    "locale.conf",
    "mime.types",
    "magic",
    "magic.mime",
    "protocols",
    "services",
    "host.conf",
    "gai.conf",
    "nsswitch.conf",
    "os-release",
    "debian_version",
    "lsb-release",
    "terminfo",
    "papersize",
    "inputrc",
    // Languages and libraries with settings of their own.
    "perl",
    "R",
    "gemrc",
    "fonts",
    "xml",
    "sgml",
    "texmf",
    "dotnet",
    "OpenCL",
    "ghc",
    "erlang",
];

/// Settings whose names carry a version.
const SETTING_PREFIXES: &[&str] = &["java", "php", "python", "ruby", "lua", "ImageMagick", "guile"];

/// Settings that matter to those with a network only. Links among them lead to files that change.
pub(crate) const NETWORK_SETTINGS: &[&str] = &["/etc/hosts", "/etc/resolv.conf"];

/// Something that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A file or folder.
    Real(PathBuf),
    /// A symbolic link, made as it is on the system.
    Link { path: PathBuf, target: PathBuf },
}

/// The system's part of every view, looked up once and again when the folders around it change.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    list: Vec<Entry>,
    /// The parts of `list` that are whole folders.
    folders: Vec<PathBuf>,
    /// When `/` and `/etc` were last changed.
    seen: [Option<(i64, i64)>; 2],
}

impl Entries {
    /// Looks again if something was added or removed, and says so.
    pub(crate) fn refresh(&mut self) -> bool {
        let seen = [modified("/"), modified("/etc")];
        if self.seen == seen && !self.list.is_empty() {
            return false;
        }
        self.seen = seen;
        let folders: Vec<Entry> = FOLDERS.iter().filter_map(|path| entry(Path::new(path))).collect();
        self.folders =
            folders.iter().filter_map(|entry| if let Entry::Real(path) = entry { Some(path.clone()) } else { None }).collect();
        self.list = folders;
        self.list.extend(SETTINGS.iter().filter_map(|name| entry(&Path::new("/etc").join(name))));
        let others = fs::read_dir("/etc").into_iter().flatten().flatten().filter(|found| {
            let name = found.file_name();
            SETTING_PREFIXES.iter().any(|prefix| name.to_string_lossy().starts_with(prefix))
        });
        self.list.extend(others.filter_map(|found| entry(&found.path())));
        true
    }

    pub(crate) fn list(&self) -> &[Entry] {
        &self.list
    }

    /// Folders that are shown whole.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }
}

fn entry(path: &Path) -> Option<Entry> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if metadata.is_symlink() {
        let target = fs::read_link(path).ok()?;
        return Some(Entry::Link { path: path.to_owned(), target });
    }
    Some(Entry::Real(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_found_and_nothing_private() {
        let mut entries = Entries::default();
        entries.refresh();
        assert!(entries.folders().contains(&PathBuf::from("/usr")));
        let has = |wanted: &str| {
            entries.list().iter().any(|entry| match entry {
                Entry::Real(path) | Entry::Link { path, .. } => path == Path::new(wanted),
            })
        };
        assert!(has("/bin") && has("/etc/nsswitch.conf"));
        for private in ["/etc/shadow", "/etc", "/root", "/home", "/etc/ssl", "/etc/passwd", "/var"] {
            assert!(!has(private), "{private}");
        }
    }
}
