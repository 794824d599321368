//! Which name each tool of the imported servers has here. A name that was given once stays with its tool for as long as
//! its server is imported, whatever is imported, added or hidden later: nobody takes another's name over.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use skillz_tool::ToolName;

use crate::{
    known::{KnownTool, KnownTools},
    names,
};

/// A tool by its server's name and its own name there.
pub(crate) type Place<'a> = (&'a str, &'a str);

/// Gives every known tool its name, hidden and unlisted ones too. `current` holds the names that tools are called by
/// now.
pub(crate) fn give<'a>(
    servers: &[(&'a str, &'a KnownTools)],
    current: &HashMap<&'a str, Place<'a>>,
) -> BTreeMap<Place<'a>, String> {
    let tools: Vec<(Place<'a>, &'a KnownTool)> =
        servers.iter().flat_map(|(server, known)| known.tools.iter().map(|tool| ((*server, tool.name.as_str()), tool))).collect();
    let places: BTreeSet<Place<'a>> = tools.iter().map(|(place, _)| *place).collect();
    let mut names = BTreeMap::new();
    let mut taken = BTreeSet::new();
    let mut claim = |place: Place<'a>, name: Option<&str>| {
        if let Some(name) = name
            && !names.contains_key(&place)
            && taken.insert(name.to_owned())
        {
            names.insert(place, name.to_owned());
        }
    };
    // Where copied files claim one name twice, it stays with the tool that is called by it.
    for (place, tool) in &tools {
        claim(*place, kept(place.0, tool).filter(|name| current.get(name) == Some(place)));
    }
    for (place, tool) in &tools {
        claim(*place, kept(place.0, tool));
    }
    // What is not in the file yet, since it is just being written.
    for (name, place) in current.iter().filter(|(_, place)| places.contains(place)) {
        claim(*place, Some(name));
    }
    // What is offered chooses first. Whatever order the server lists them in, the names are the same.
    for is_offered in [true, false] {
        for (server, known) in servers {
            let mut new: Vec<&KnownTool> = known.tools.iter().filter(|tool| known.offers(tool) == is_offered).collect();
            new.sort_by(|left, right| left.name.cmp(&right.name));
            for tool in new {
                let place = (*server, tool.name.as_str());
                names.entry(place).or_insert_with(|| names::tool_name(server, &tool.name, &mut taken));
            }
        }
    }
    names
}

/// The name that a file keeps for a tool, if it is one that the server's tools can have.
fn kept<'a>(server: &str, tool: &'a KnownTool) -> Option<&'a str> {
    let name = tool.served_as.as_deref()?;
    let is_own = name.strip_prefix(server).is_some_and(|rest| rest.starts_with('_'));
    (is_own && ToolName::for_new(name).is_ok()).then_some(name)
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    fn known(tools: &[(&str, Option<&str>)]) -> KnownTools {
        let tools = tools.iter().map(|(name, served_as)| {
            let mut tool = KnownTool::read(json!({"name": name})).expect("has a name");
            tool.served_as = served_as.map(str::to_owned);
            tool
        });
        KnownTools { tools: tools.collect(), ..KnownTools::default() }
    }

    fn given(servers: &[(&str, &KnownTools)], current: &[(&str, Place<'_>)]) -> Vec<String> {
        let current = current.iter().copied().collect();
        let names = give(servers, &current);
        let places = servers.iter().flat_map(|(server, known)| known.tools.iter().map(|tool| (*server, tool.name.as_str())));
        places.map(|place| names.get(&place).cloned().expect("each has a name")).collect()
    }

    #[test]
    fn a_later_import_takes_no_name_over() {
        let (before, later) = (known(&[("read", Some("my_files_read"))]), known(&[("files_read", None)]));
        assert_eq!(given(&[("my", &later), ("my_files", &before)], &[]), ["my_files_read_2", "my_files_read"]);
        let unsaved = known(&[("read", None)]);
        let current = [("my_files_read", ("my_files", "read"))];
        assert_eq!(given(&[("my", &later), ("my_files", &unsaved)], &current), ["my_files_read_2", "my_files_read"]);
    }

    #[test]
    fn a_tool_that_is_added_leaves_the_others_their_names() {
        let both = known(&[("Echo", None), ("echo", Some("s_echo"))]);
        assert_eq!(given(&[("s", &both)], &[]), ["s_echo_2", "s_echo"]);
        assert_eq!(given(&[("s", &known(&[("Echo", None), ("echo", None)]))], &[]), ["s_echo", "s_echo_2"]);
    }

    #[test]
    fn hidden_and_unlisted_names_are_not_used_again() {
        let mut before = known(&[("get.sum", Some("s_get_sum")), ("get-sum", None), ("a.b", Some("s_a_b")), ("a-b", None)]);
        before.hidden.insert("get.sum".to_owned());
        if let Some(tool) = before.tools.get_mut(2) {
            tool.listed = false;
        }
        assert_eq!(given(&[("s", &before)], &[]), ["s_get_sum", "s_get_sum_2", "s_a_b", "s_a_b_2"]);
    }

    #[test]
    fn a_copied_or_made_up_name_does_not_count() {
        let (own, copy) = (known(&[("read", Some("my_files_read"))]), known(&[("read", Some("my_files_read"))]));
        let current = [("my_files_read", ("my_files", "read"))];
        assert_eq!(given(&[("my", &copy), ("my_files", &own)], &current), ["my_read", "my_files_read"]);
        let wrong = known(&[("a", Some("list_tools")), ("b", Some("other_b")), ("c", Some("s_C"))]);
        assert_eq!(given(&[("s", &wrong)], &[]), ["s_a", "s_b", "s_c"]);
    }
}
