//! Takes over the memory of Skillz 0.8: a database whose layout changed between its releases, so it is
//! looked at rather than assumed. The old file is only ever read.

use std::path::Path;

use async_trait::async_trait;
use libsql::{Builder, Connection, OpenFlags, Value as Cell, params};
use skillz_json::Value;
use skillz_tool::StoreError;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    LegacyImport,
    database::finish,
    expiry::now,
    failure::Failure,
    limits::{check_key, serialise_value},
    operation::{Operation, write},
};

/// Names a column may have, the usual one first.
const NAMESPACE_COLUMNS: [&str; 5] = ["tool", "tool_name", "namespace", "tool_id", "owner"];
const KEY_COLUMNS: [&str; 3] = ["key", "name", "k"];
const VALUE_COLUMNS: [&str; 4] = ["value", "data", "json", "v"];
const EXPIRY_COLUMNS: [&str; 4] = ["expires_at", "expires", "expiry", "expire_at"];

/// An entry of the old memory, fit for the new one.
pub(crate) struct LegacyEntry {
    namespace: String,
    key: String,
    value: String,
    expires_at: Option<f64>,
}

/// What the old memory held.
pub(crate) struct LegacyEntries {
    entries: Vec<LegacyEntry>,
    skipped: u64,
}

/// Whether a file has been taken over already.
pub(crate) struct Seen {
    pub(crate) path: String,
}

/// Writes the entries of a file, and that it was taken over, in one transaction.
pub(crate) struct TakeOver {
    pub(crate) path: String,
    pub(crate) entries: LegacyEntries,
}

/// Where the old memory's parts are in its tables.
struct Layout {
    table: String,
    namespace: String,
    key: String,
    value: String,
    expiry: Option<String>,
}

/// Reads all entries of an old file. Blocks.
pub(crate) fn read(path: &Path) -> Result<LegacyEntries, StoreError> {
    let outcome = finish(async {
        // SQLite needs to write to the side files of a database in WAL mode even to read it; the main file is left alone.
        let database = Builder::new_local(path).flags(OpenFlags::SQLITE_OPEN_READ_WRITE).build().await?;
        let connection = database.connect()?;
        let layouts = find_layouts(&connection).await?;
        if layouts.is_empty() {
            return Err(Failure::Unusable(
                "it has no table with a tool, a key and a value; its content was left where it is".to_owned(),
            ));
        }
        let mut entries = LegacyEntries { entries: Vec::new(), skipped: 0 };
        for layout in layouts {
            read_table(&connection, &layout, &mut entries).await?;
        }
        Ok(entries)
    });
    outcome.map_err(|failure| failure.into_store_error(path))
}

async fn find_layouts(connection: &Connection) -> Result<Vec<Layout>, Failure> {
    let mut names = Vec::new();
    let mut rows = connection.query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name", ()).await?;
    while let Some(row) = rows.next().await? {
        names.push(row.get::<String>(0)?);
    }
    let mut layouts = Vec::new();
    for table in names {
        let mut columns = Vec::new();
        let mut rows = connection.query("SELECT name FROM pragma_table_info(?1)", params![table.as_str()]).await?;
        while let Some(row) = rows.next().await? {
            columns.push(row.get::<String>(0)?);
        }
        let find = |names: &[&str]| {
            names.iter().find(|name| columns.iter().any(|column| column == *name)).map(|name| (*name).to_owned())
        };
        if let (Some(namespace), Some(key), Some(value)) = (find(&NAMESPACE_COLUMNS), find(&KEY_COLUMNS), find(&VALUE_COLUMNS)) {
            layouts.push(Layout { table, namespace, key, value, expiry: find(&EXPIRY_COLUMNS) });
        }
    }
    Ok(layouts)
}

async fn read_table(connection: &Connection, layout: &Layout, into: &mut LegacyEntries) -> Result<(), Failure> {
    let Layout { namespace, key, value, .. } = layout;
    let expiry = layout.expiry.as_deref().unwrap_or("NULL");
    // Column names are constants; only the table's name is foreign.
    let table = layout.table.replace('"', "\"\"");
    let mut rows = connection.query(&format!("SELECT {namespace}, {key}, {value}, {expiry} FROM \"{table}\""), ()).await?;
    while let Some(row) = rows.next().await? {
        let entry = LegacyEntry::from_cells(row.get_value(0)?, row.get_value(1)?, row.get_value(2)?, &row.get_value(3)?);
        match entry {
            Some(entry) => into.entries.push(entry),
            None => into.skipped += 1,
        }
    }
    Ok(())
}

impl LegacyEntry {
    /// `None` for an entry that has expired or breaks a limit.
    fn from_cells(namespace: Cell, key: Cell, value: Cell, expiry: &Cell) -> Option<Self> {
        let (namespace, key) = (text(namespace)?, text(key)?);
        check_key(&key).ok()?;
        let expires_at = match expiry {
            Cell::Null => None,
            expiry => Some(unix_seconds(expiry)?),
        };
        if expires_at.is_some_and(|expires_at| expires_at <= now()) {
            return None;
        }
        let value = match value {
            Cell::Integer(number) => Value::from(number),
            Cell::Real(number) => Value::from(number),
            Cell::Null => Value::Null,
            other => {
                let text = text(other)?;
                serde_json::from_str(&text).unwrap_or(Value::String(text))
            }
        };
        Some(Self { value: serialise_value(&key, &value).ok()?, namespace, key, expires_at })
    }
}

fn text(cell: Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => Some(text),
        Cell::Blob(bytes) => String::from_utf8(bytes).ok(),
        Cell::Integer(number) => Some(number.to_string()),
        Cell::Real(_) | Cell::Null => None,
    }
}

/// Reads a moment as seconds, as milliseconds, as SQLite's `YYYY-MM-DD HH:MM:SS` in UTC, or as RFC 3339.
fn unix_seconds(cell: &Cell) -> Option<f64> {
    /// Seconds beyond the year 5000 must be milliseconds.
    const FAR: f64 = 1e11;
    let scale = |number: f64| if number > FAR { number / 1_000.0 } else { number };
    match cell {
        Cell::Integer(number) => Some(scale(*number as f64)),
        Cell::Real(number) => Some(scale(*number)),
        Cell::Text(text) => {
            if let Ok(number) = text.parse::<f64>() {
                return Some(scale(number));
            }
            // SQLite writes UTC without saying so.
            let moment = OffsetDateTime::parse(text, &Rfc3339)
                .or_else(|_| OffsetDateTime::parse(&format!("{}Z", text.replacen(' ', "T", 1)), &Rfc3339));
            moment.ok().map(|moment| moment.unix_timestamp() as f64)
        }
        Cell::Null | Cell::Blob(_) => None,
    }
}

#[async_trait]
impl Operation for Seen {
    type Output = bool;

    async fn run(&self, connection: &Connection) -> Result<bool, Failure> {
        let mut rows = connection.query("SELECT 1 FROM takeovers WHERE path = ?1", params![self.path.as_str()]).await?;
        Ok(rows.next().await?.is_some())
    }
}

#[async_trait]
impl Operation for TakeOver {
    type Output = Option<LegacyImport>;

    async fn run(&self, connection: &Connection) -> Result<Self::Output, Failure> {
        // Asked again under the write lock: another process may have been faster.
        if (Seen { path: self.path.clone() }).run(connection).await? {
            return Ok(None);
        }
        let mut import = LegacyImport { imported: 0, skipped: self.entries.skipped };
        for entry in &self.entries.entries {
            if is_there(connection, entry).await? {
                import.skipped += 1;
                continue;
            }
            write(connection, &entry.namespace, &entry.key, &entry.value, entry.expires_at).await?;
            import.imported += 1;
        }
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        connection
            .execute(
                "INSERT INTO takeovers (path, taken_at, imported, skipped) VALUES (?1, ?2, ?3, ?4)",
                params![self.path.as_str(), now(), count(import.imported), count(import.skipped)],
            )
            .await?;
        Ok(Some(import))
    }
}

async fn is_there(connection: &Connection, entry: &LegacyEntry) -> Result<bool, Failure> {
    let mut rows = connection
        .query("SELECT 1 FROM memory WHERE namespace = ?1 AND key = ?2", params![entry.namespace.as_str(), entry.key.as_str()])
        .await?;
    Ok(rows.next().await?.is_some())
}
