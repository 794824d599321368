//! Pages of long lists. A cursor is the name of the last item seen, so that a page stays right when the list changes.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rmcp::ErrorData;

/// Marks this server's cursors, and their form.
const MARK: &str = "a:";

/// A page, and the way to the next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page<'a, T> {
    pub(crate) items: &'a [T],
    pub(crate) next_cursor: Option<String>,
}

/// The page of at most `size` items that follows `cursor`; `items` are sorted by `key`.
pub(crate) fn slice<'a, T>(
    items: &'a [T],
    cursor: Option<&str>,
    size: usize,
    key: impl Fn(&T) -> &str,
) -> Result<Page<'a, T>, ErrorData> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let last = decode(cursor)
                .ok_or_else(|| ErrorData::invalid_params("The cursor is none of this server's; list again without one", None))?;
            items.partition_point(|item| key(item) <= last.as_str())
        }
    };
    let rest = items.get(start..).unwrap_or_default();
    let page = rest.get(..size.min(rest.len())).unwrap_or_default();
    let next_cursor = if rest.len() > size { page.last().map(|last| encode(key(last))) } else { None };
    Ok(Page { items: page, next_cursor })
}

fn encode(last: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{MARK}{last}"))
}

fn decode(cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(MARK).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_one_another_and_survive_changes() {
        let mut names = ["a", "b", "c", "d", "e"].to_vec();
        let first = slice(&names, None, 2, |name| name).expect("no cursor");
        assert_eq!(first.items, ["a", "b"]);
        let cursor = first.next_cursor.expect("there is more");
        names.retain(|name| *name != "b");
        let second = slice(&names, Some(&cursor), 2, |name| name).expect("our cursor");
        assert_eq!(second.items, ["c", "d"]);
        let last = slice(&names, second.next_cursor.as_deref(), 2, |name| name).expect("our cursor");
        assert_eq!((last.items, last.next_cursor), (&["e"][..], None));
        for cursor in ["", "x", "Yjph", "%%%", &"A".repeat(10_000)] {
            assert!(slice(&names, Some(cursor), 2, |name| name).is_err(), "{cursor}");
        }
    }
}
