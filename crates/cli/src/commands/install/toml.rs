//! Client configs in TOML.

use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::entry::Entry;

pub(super) fn with_server(config: &str, name: &str, entry: &Entry) -> Result<String, String> {
    let mut document: DocumentMut = config.parse().map_err(|error| format!("it is no TOML ({error})"))?;
    let servers = document.entry("mcp_servers").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut().ok_or("its `mcp_servers` is no table")?;
    let server = servers.entry(name).or_insert_with(|| Item::Table(Table::new()));
    let server = server.as_table_like_mut().ok_or_else(|| format!("its `mcp_servers.{name}` is no table"))?;

    set(server, "command", value(entry.command.as_str()));
    set(server, "args", value(entry.arguments.iter().map(String::as_str).collect::<Array>()));
    if !entry.environment.is_empty() {
        let variables: toml_edit::InlineTable =
            entry.environment.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        set(server, "env", value(variables));
    }
    Ok(document.to_string())
}

/// Sets a member unless it holds the same already, so that spacing and comments of an unchanged line stay.
fn set(table: &mut dyn toml_edit::TableLike, key: &str, item: Item) {
    let same = table.get(key).is_some_and(|existing| existing.to_string().trim() == item.to_string().trim());
    if !same {
        table.insert(key, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            command: "/bin/skillz".to_owned(),
            arguments: Vec::new(),
            environment: vec![("SKILLZ_HOME".to_owned(), "/s".to_owned())],
        }
    }

    #[test]
    fn the_server_is_added_and_the_rest_stays() {
        let before = "# mine\nmodel = \"big\"\n\n[mcp_servers.other]\ncommand = \"x\" # keep\n";
        let after = with_server(before, "skillz", &entry()).expect("added");
        assert!(after.starts_with(before), "{after}");
        assert!(
            after.contains("[mcp_servers.skillz]\ncommand = \"/bin/skillz\"\nargs = []\nenv = { SKILLZ_HOME = \"/s\" }\n"),
            "{after}"
        );
        assert_eq!(with_server(&after, "skillz", &entry()).expect("again"), after);
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        for broken in ["a = ", "mcp_servers = 1", "[mcp_servers]\nskillz = 1"] {
            assert!(with_server(broken, "skillz", &entry()).is_err(), "{broken}");
        }
    }
}
