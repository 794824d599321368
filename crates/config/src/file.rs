//! One TOML file: its settings with their lines, or everything that is wrong with it.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    ops::Range,
    path::Path,
};

use toml::{
    Value,
    de::{DeTable, DeValue},
};

use crate::{
    error::{ConfigError, Fault},
    keys::{KEYS, Key},
};

/// A config file is a page, not a book; more is a mistake or an attack.
const LARGEST_FILE: u64 = 1 << 20;

/// A setting found in a file.
pub(crate) struct Found {
    pub(crate) key: &'static Key,
    pub(crate) value: Value,
    pub(crate) line: usize,
}

/// Reads a file; `None` where there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    let place = || path.display().to_string();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ConfigError::one(place(), format!("The file cannot be opened: {error}"))),
    };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(ConfigError::one(place(), "This is not a file"));
    }
    let mut text = String::new();
    match file.take(LARGEST_FILE + 1).read_to_string(&mut text) {
        Ok(length) if length as u64 > LARGEST_FILE => Err(ConfigError::one(place(), "The file is larger than 1 MB")),
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(ConfigError::one(place(), format!("The file cannot be read: {error}"))),
    }
}

/// Finds the settings in a file's text.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Vec<Found>, ConfigError> {
    let place = |offset: usize| format!("{}:{}", path.display(), line_of(text, offset));
    let broken = |error: &toml::de::Error| {
        ConfigError::one(place(error.span().map_or(0, |span| span.start)), format!("This is no TOML: {}", error.message()))
    };
    let values: toml::Table = toml::from_str(text).map_err(|error| broken(&error))?;
    let spans = DeTable::parse(text).map_err(|error| broken(&error))?;

    let mut walk = Walk { found: Vec::new(), faults: Vec::new(), text, path };
    walk.table("", spans.get_ref(), &values);
    if walk.faults.is_empty() {
        return Ok(walk.found);
    }
    walk.faults.sort_by_key(|(line, _)| *line);
    Err(ConfigError { faults: walk.faults.into_iter().map(|(_, fault)| fault).collect() })
}

struct Walk<'a> {
    found: Vec<Found>,
    faults: Vec<(usize, Fault)>,
    text: &'a str,
    path: &'a Path,
}

impl Walk<'_> {
    fn table(&mut self, prefix: &str, spans: &DeTable<'_>, values: &toml::Table) {
        for (name, span) in spans {
            let Some(value) = values.get(name.get_ref().as_ref()) else { continue };
            let dotted = format!("{prefix}{}", name.get_ref());
            let inner = format!("{dotted}.");
            match (span.get_ref(), value) {
                (DeValue::Table(spans), Value::Table(values)) if KEYS.iter().any(|key| key.name.starts_with(&inner)) => {
                    self.table(&inner, spans, values);
                }
                _ => self.setting(&dotted, name.span(), value),
            }
        }
    }

    fn setting(&mut self, dotted: &str, span: Range<usize>, value: &Value) {
        let line = line_of(self.text, span.start);
        let place = format!("{}:{line}", self.path.display());
        let Some(key) = KEYS.iter().find(|key| key.name == dotted && key.in_file) else {
            let known: Vec<String> = KEYS.iter().filter(|key| key.in_file).map(|key| format!("`{}`", key.name)).collect();
            let message = format!("There is no setting `{dotted}`; the settings are {}", known.join(", "));
            self.faults.push((line, Fault::new(place, message)));
            return;
        };
        match key.kind.check(value) {
            Ok(()) => self.found.push(Found { key, value: value.clone(), line }),
            Err(expected) => self.faults.push((line, Fault::new(place, format!("`{dotted}` {expected}")))),
        }
    }
}

/// The line of a byte offset, counted from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or_default().matches('\n').count() + 1
}
