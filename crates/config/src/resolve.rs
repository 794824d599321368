//! Lays the layers over each other and keeps, for each value, where it came from.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use toml::Value;

use crate::{
    Environment, Settings,
    error::{ConfigError, Fault},
    file,
    keys::{KEYS, Key, Kind},
};

const DEFAULTS: &str = include_str!("defaults.toml");
const WORKSPACE_FILE: &str = ".skillz.toml";

/// What the command line says; `None` where it says nothing.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config`: read this file instead of `config.toml` in the data folder. It must exist.
    pub config: Option<PathBuf>,
    /// `--tools-dir`.
    pub tools_dir: Option<PathBuf>,
    /// `--transport`.
    pub transport: Option<String>,
    /// `--host`.
    pub host: Option<String>,
    /// `--port`.
    pub port: Option<u16>,
    /// `--hot-reload` (true) or `--no-watch` (false).
    pub watch: Option<bool>,
    /// `--log-format`.
    pub log_format: Option<String>,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// A file and its line.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(&'static str),
    /// A flag.
    Flag(&'static str),
}

/// A setting as `skillz config` shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its dotted name.
    pub key: &'static str,
    /// Its value as TOML; `None` where it is not set; secrets read `"<hidden>"`.
    pub value: Option<Value>,
    /// Where it came from.
    pub source: Source,
}

/// The settings, and how they came about.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The settings.
    pub settings: Settings,
    /// Each setting with its source, in the order of the table.
    pub entries: Vec<Entry>,
    /// The environment that the process was started with.
    pub environment: Environment,
}

impl Resolved {
    /// The workspace roots of clients that name none: the operator's, else the folder where the server was
    /// started, unless that is `/` or a home, which is where desktop programs start servers.
    pub fn operator_roots(&self) -> Vec<PathBuf> {
        if let Some(roots) = &self.settings.roots {
            return roots.clone();
        }
        let current = self.environment.current_directory();
        let is_home = self.environment.home().is_some_and(|home| home == current);
        let of_some_user = current.parent().is_some_and(|parent| parent == Path::new("/home") || parent == Path::new("/Users"));
        if current.parent().is_none() || is_home || of_some_user { Vec::new() } else { vec![current.to_owned()] }
    }
}

/// Resolves all layers.
pub fn resolve(environment: Environment, flags: &Flags) -> Result<Resolved, ConfigError> {
    let mut layers = Layers::new(&environment);
    layers.defaults()?;
    layers.home()?;
    layers.main_file(flags.config.as_deref());
    layers.workspace_file();
    layers.variables();
    layers.flags(flags);
    if !layers.faults.is_empty() {
        return Err(ConfigError { faults: layers.faults });
    }
    layers.tools_folder();
    let (settings, entries) = layers.finish()?;
    Ok(Resolved { settings, entries, environment })
}

struct Layers<'a> {
    values: BTreeMap<&'static str, (Value, Source)>,
    faults: Vec<Fault>,
    environment: &'a Environment,
    home: PathBuf,
}

impl<'a> Layers<'a> {
    fn new(environment: &'a Environment) -> Self {
        Self { values: BTreeMap::new(), faults: Vec::new(), environment, home: PathBuf::new() }
    }

    fn defaults(&mut self) -> Result<(), ConfigError> {
        for found in file::parse(Path::new("defaults.toml"), DEFAULTS)? {
            self.values.insert(found.key.name, (found.value, Source::Default));
        }
        Ok(())
    }

    /// The data folder comes first, since a layer lies in it.
    fn home(&mut self) -> Result<(), ConfigError> {
        let (home, source) = if let Some(home) = self.environment.path("SKILLZ_HOME") {
            (self.absolute(&home, self.environment.current_directory()), Source::Variable("SKILLZ_HOME"))
        } else if let Some(user) = self.environment.home() {
            (user.join(".skillz"), Source::Default)
        } else {
            let message = "Neither SKILLZ_HOME nor HOME is set, so there is no place for the data folder. Set SKILLZ_HOME to an absolute path";
            return Err(ConfigError::one("SKILLZ_HOME", message));
        };
        let Some(text) = home.to_str() else {
            return Err(ConfigError::one("SKILLZ_HOME", format!("The path `{}` is not UTF-8", home.display())));
        };
        self.values.insert("home", (Value::from(text), source));
        self.home = home;
        Ok(())
    }

    fn main_file(&mut self, given: Option<&Path>) {
        let path = match given {
            Some(given) => self.absolute(given, self.environment.current_directory()),
            None => self.home.join("config.toml"),
        };
        match self.read(&path) {
            Some(found) => {
                for found in found {
                    let source = Source::File { path: path.clone(), line: found.line };
                    let value = self.anchored(found.key, found.value, path.parent().unwrap_or(&path));
                    self.values.insert(found.key.name, (value, source));
                }
            }
            None if given.is_some() && !path.exists() => {
                self.faults.push(Fault::new("--config", format!("There is no file `{}`", path.display())));
            }
            None => {}
        }
    }

    /// A workspace comes from anywhere, so its file may take rights away and nothing else.
    fn workspace_file(&mut self) {
        let path = self.environment.current_directory().join(WORKSPACE_FILE);
        for found in self.read(&path).unwrap_or_default() {
            let name = found.key.name;
            let Some(narrowing) = found.key.narrowing else {
                let message = format!(
                    "`{name}` may not be set by a workspace, which can only narrow permissions. Set it in `config.toml` of the data folder"
                );
                self.faults.push(Fault::new(format!("{}:{}", path.display(), found.line), message));
                continue;
            };
            let current = self.values.get(name).map(|(value, _)| value);
            if narrowing.narrows(found.key.kind, current, &found.value) {
                let source = Source::File { path: path.clone(), line: found.line };
                self.values.insert(name, (found.value, source));
            }
        }
    }

    fn variables(&mut self) {
        for key in KEYS {
            let Some(variable) = key.variable else { continue };
            if variable == "SKILLZ_HOME" {
                continue;
            }
            let Some(text) = self.environment.get(variable) else { continue };
            match key.kind.parse(text) {
                Ok(value) => {
                    let value = self.anchored(key, value, self.environment.current_directory());
                    self.set_by_person(key, value, Source::Variable(variable));
                }
                Err(expected) => self.faults.push(Fault::new(variable, format!("The variable {expected}"))),
            }
        }
    }

    fn flags(&mut self, flags: &Flags) {
        let watch = if flags.watch == Some(false) { "--no-watch" } else { "--hot-reload" };
        let given = [
            ("tools_dir", "--tools-dir", flags.tools_dir.as_ref().map(|path| path.display().to_string())),
            ("transport", "--transport", flags.transport.clone()),
            ("host", "--host", flags.host.clone()),
            ("port", "--port", flags.port.map(|port| port.to_string())),
            ("watch", watch, flags.watch.map(|watch| watch.to_string())),
            ("log_format", "--log-format", flags.log_format.clone()),
        ];
        for (name, flag, text) in given {
            let (Some(text), Some(key)) = (text, KEYS.iter().find(|key| key.name == name)) else { continue };
            match key.kind.parse(&text) {
                Ok(value) => {
                    let value = self.anchored(key, value, self.environment.current_directory());
                    self.set_by_person(key, value, Source::Flag(flag));
                }
                Err(expected) => self.faults.push(Fault::new(flag, format!("`{name}` {expected}"))),
            }
        }
    }

    /// Variables and flags outrank every file, except that they do not widen what a workspace narrowed.
    fn set_by_person(&mut self, key: &'static Key, value: Value, source: Source) {
        if let (Some((current, Source::File { path, .. })), Some(narrowing)) = (self.values.get(key.name), key.narrowing)
            && path.file_name().is_some_and(|name| name == WORKSPACE_FILE)
            && !narrowing.narrows(key.kind, Some(current), &value)
        {
            return;
        }
        self.values.insert(key.name, (value, source));
    }

    fn tools_folder(&mut self) {
        let default = self.home.join("tools").display().to_string();
        self.values.entry("tools_dir").or_insert((Value::from(default), Source::Default));
    }

    fn finish(self) -> Result<(Settings, Vec<Entry>), ConfigError> {
        let mut nested = toml::Table::new();
        let mut entries = Vec::with_capacity(KEYS.len());
        for key in KEYS {
            let (value, source) = match self.values.get(key.name) {
                Some((value, source)) => (Some(value.clone()), source.clone()),
                None => (None, Source::Default),
            };
            if let Some(value) = value.clone() {
                insert_dotted(&mut nested, key.name, value);
            }
            let shown = if key.kind == Kind::Secret { value.map(|_| Value::from("<hidden>")) } else { value };
            entries.push(Entry { key: key.name, value: shown, source });
        }
        // Each value was checked where it came from; what fails here is a gap between the table and the structs.
        let settings = Settings::deserialize_from(nested).map_err(|error| ConfigError::one("settings", error.message()))?;
        Ok((settings, entries))
    }

    fn read(&mut self, path: &Path) -> Option<Vec<file::Found>> {
        let parsed = file::read(path).and_then(|text| text.map(|text| file::parse(path, &text)).transpose());
        parsed.unwrap_or_else(|error| {
            self.faults.extend(error.faults);
            None
        })
    }

    /// Makes the paths in a value absolute.
    fn anchored(&self, key: &Key, value: Value, base: &Path) -> Value {
        match (key.kind, value) {
            (Kind::Folder, Value::String(path)) => Value::from(self.absolute(Path::new(&path), base).display().to_string()),
            (Kind::Folders, Value::Array(paths)) => {
                let paths = paths.iter().filter_map(Value::as_str);
                Value::Array(paths.map(|path| Value::from(self.absolute(Path::new(path), base).display().to_string())).collect())
            }
            (_, value) => value,
        }
    }

    fn absolute(&self, path: &Path, base: &Path) -> PathBuf {
        if let (Ok(rest), Some(user)) = (path.strip_prefix("~"), self.environment.home()) {
            return user.join(rest);
        }
        base.join(path)
    }
}

impl Settings {
    fn deserialize_from(table: toml::Table) -> Result<Self, toml::de::Error> {
        Value::Table(table).try_into()
    }
}

fn insert_dotted(table: &mut toml::Table, name: &str, value: Value) {
    let Some((section, name)) = name.split_once('.') else {
        table.insert(name.to_owned(), value);
        return;
    };
    let section = table.entry(section.to_owned()).or_insert_with(|| Value::Table(toml::Table::new()));
    if let Value::Table(section) = section {
        section.insert(name.to_owned(), value);
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Variable(name) => write!(formatter, "variable {name}"),
            Self::Flag(name) => write!(formatter, "flag {name}"),
        }
    }
}

#[cfg(test)]
mod tests;
