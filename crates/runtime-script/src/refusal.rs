//! Refusals that a script met as ordinary errors: no such file, connection refused, a missing variable, no such module.
//! Each is told with the permission, folder or dependency that would have let it.

use std::path::{Path, PathBuf};

use skillz_tool::{FolderMode, ToolCall, ToolError};

use crate::language::Language;

/// What programs say when they looked for a host, or a port, in vain.
const NO_NETWORK: [&str; 12] = [
    "name resolution",
    "Name or service not known",
    "getaddrinfo",
    "Could not resolve host",
    "Network is unreachable",
    "nodename nor servname",
    "NameResolutionError",
    "Connection refused",
    "connection refused",
    "ECONNREFUSED",
    "ENETUNREACH",
    "Failed to connect to",
];
/// What they say of files.
const NOT_THERE: [&str; 3] = ["No such file or directory", "no such file or directory", "cannot find the file"];
const NOT_ALLOWED: [&str; 4] = ["Permission denied", "permission denied", "Operation not permitted", "operation not permitted"];
const NOT_WRITABLE: [&str; 2] = ["Read-only file system", "read-only file system"];
/// Folders that each sandbox shows, or that are its own: what is not there is not there.
const SYSTEM: [&str; 9] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/sys", "/dev", "/tmp"];
/// So much of a text is searched, from its end, where programs say what was wrong.
const SEARCHED_BYTES: usize = 16 << 10;

/// Adds what would have let the call go on, where it failed for want of that.
pub(crate) fn explain(mut error: ToolError, call: &ToolCall, language: Language, private: &Path) -> ToolError {
    if error.hint.is_some() {
        return error;
    }
    let output = error.output.as_deref().unwrap_or_default();
    let start = (output.len().saturating_sub(SEARCHED_BYTES)..=output.len()).find(|start| output.is_char_boundary(*start));
    let said = format!("{}\n{}", output.get(start.unwrap_or_default()..).unwrap_or_default(), error.message);
    error.hint = module(&said, language)
        .or_else(|| variable(&said, call))
        .or_else(|| said.lines().rev().find_map(|line| file(line, call, private)))
        .or_else(|| network(&said, call, &error.message));
    error
}

fn module(said: &str, language: Language) -> Option<String> {
    let (markers, installer): (&[&str], _) = match language {
        Language::Python => (&["No module named "], "pip"),
        Language::JavaScript | Language::TypeScript => (&["Cannot find package ", "Cannot find module "], "npm"),
        Language::Other => return None,
    };
    let after = markers.iter().find_map(|marker| said.rsplit_once(marker))?.1;
    let quote = after.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let name = after.get(1..)?.split(quote).next()?;
    let package = match (language, name.strip_prefix('@')) {
        _ if name.starts_with(['.', '/']) || name.starts_with("file:") => return None,
        (Language::Python, _) => name.split('.').next()?,
        (_, Some(_)) => name,
        _ => name.split('/').next()?,
    };
    Some(format!(
        "`{package}` is not installed for it. Register it again with `dependencies: [\"{package}\"]`, or the name that {installer} knows it by"
    ))
}

fn variable(said: &str, call: &ToolCall) -> Option<String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let quoted = |marker: &str| said.rsplit_once(marker).and_then(|(_, after)| after.split(['\'', '"']).next());
    let before = |marker: &str| said.rsplit_once(marker).and_then(|(before, _)| before.rsplit([' ', '\n']).next());
    // Python says which key is missing, and its frames of which mapping.
    let of_mapping = ["environ", "<frozen os>", "/os.py"].iter().any(|sign| said.contains(sign)).then(|| quoted("KeyError: '"));
    let name = of_mapping
        .flatten()
        .or_else(|| quoted("key not found: \""))
        .or_else(|| before(": unbound variable"))
        .or_else(|| before(": parameter not set"))
        .or_else(|| before(": parameter null or not set"))
        .filter(|name| is_name(name))?;
    let is_granted = call.grants.environment.iter().any(|variable| variable.name == name);
    (!is_granted).then(|| {
        format!("It is not given the variable `{name}`. Register it again with `permissions: {{\"env\": [\"{name}\"]}}`")
    })
}

fn file(line: &str, call: &ToolCall, private: &Path) -> Option<String> {
    let find = |words: &[&str]| words.iter().find_map(|words| line.split_once(words));
    let (is_missing, is_written, (before, after)) = match (find(&NOT_WRITABLE), find(&NOT_ALLOWED), find(&NOT_THERE)) {
        (Some(around), _, _) => (false, true, around),
        (None, Some(around), _) => (false, false, around),
        (None, None, Some(around)) => (true, false, around),
        (None, None, None) => return None,
    };
    let path = Path::new(path_in(before, after)?);
    if path.is_relative() {
        return is_missing.then(|| relative(path, call)).flatten();
    }
    let shown = path.display();
    let system = SYSTEM.iter().any(|folder| path.starts_with(folder));
    let own = [private, &call.context.data_directory, &call.tool.directory];
    if system || own.iter().any(|folder| !folder.as_os_str().is_empty() && path.starts_with(folder)) {
        return None;
    }
    match call.grants.folders.iter().find(|grant| path.starts_with(&grant.path)) {
        Some(grant) if grant.mode == FolderMode::Ro && !is_missing => Some(format!(
            "`{}` is granted for reading only. Register it again with `\"mode\": \"rw\"` for it in `permissions.fs`",
            grant.path.display()
        )),
        Some(_) => None,
        None => {
            let mode = if is_written { "rw" } else { "ro" };
            Some(format!(
                "`{shown}` is outside of what it may see. Register it again with `permissions: {{\"fs\": [{{\"path\": \"{}\", \"mode\": \"{mode}\"}}]}}`",
                grantable(path, call)
            ))
        }
    }
}

/// What to ask for so that a path is seen: its root where it is in one, else its folder.
fn grantable(path: &Path, call: &ToolCall) -> String {
    if call.context.roots.iter().any(|root| path.starts_with(root)) {
        return "$ROOT".to_owned();
    }
    let folder = if path.is_dir() { path } else { path.parent().filter(|parent| parent.parent().is_some()).unwrap_or(path) };
    folder.display().to_string()
}

fn relative(path: &Path, call: &ToolCall) -> Option<String> {
    let sees = |root: &PathBuf| call.grants.folders.iter().any(|grant| root.starts_with(&grant.path));
    let root = call.context.roots.first()?;
    if call.tool.manifest.working_directory.is_some() || !(sees(root) || root.join(path).exists()) {
        return None;
    }
    Some(format!(
        "It starts in a private, empty folder, where `{}` is not. Give an absolute path, or register it again with `working_directory: \
         \"$ROOT\"` and `permissions: {{\"fs\": [{{\"path\": \"$ROOT\"}}]}}`",
        path.display()
    ))
}

fn network(said: &str, call: &ToolCall, message: &str) -> Option<String> {
    // `curl` that says nothing ends with 6 where a name is not found, and with 7 where nobody answers.
    let is_curl = message.ends_with("ended with exit code 6") || message.ends_with("ended with exit code 7");
    let fails = is_curl || NO_NETWORK.iter().any(|words| said.contains(words));
    (fails && call.grants.network.is_none())
        .then(|| "It has no network, loopback included. Register it again with `permissions: {\"network\": true}`".to_owned())
}

/// The path that a complaint names: quoted behind it or before it, or the last part before it.
fn path_in<'a>(before: &'a str, after: &'a str) -> Option<&'a str> {
    let quoted = |text: &'a str, quote: char| {
        let (rest, _) = text.rsplit_once(quote)?;
        rest.rsplit_once(quote).map(|(_, path)| path)
    };
    let last = || {
        let text = before.trim_end_matches([':', ' ', '[', '(']);
        let text = text.strip_suffix("Failed to open stream").map_or(text, |text| text.trim_end_matches([':', ' ']));
        let text = text.strip_suffix(')').and_then(|text| text.rsplit_once('(')).map_or(text, |(_, path)| path);
        text.rsplit_once(": ").map_or(text, |(_, path)| path).trim_start_matches("cannot open ")
    };
    let path = quoted(after, '\'')
        .or_else(|| quoted(after, '"'))
        .or_else(|| after.split_once(" - ").and_then(|(_, rest)| rest.split(" (").next()))
        .or_else(|| quoted(before, '\''))
        .or_else(|| quoted(before, '"'))
        .unwrap_or_else(last)
        .trim();
    (!path.is_empty() && path.len() < 4096 && !path.contains("://")).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use skillz_tool::{
        CallClock, CallContext, EffectiveLimits, FolderGrant, Grants, Manifest, Tool, ToolKind, ToolName, Version,
    };

    use super::*;

    fn call() -> ToolCall {
        let manifest = Manifest::new("t", "", ToolKind::Script);
        let name = ToolName::for_existing("t").unwrap();
        let grant = |path: &str, mode| FolderGrant { path: path.into(), mode };
        ToolCall {
            tool: Arc::new(Tool::new(name, Version::FIRST, "/tools/t".into(), manifest, String::new())),
            arguments: skillz_json::Map::new(),
            clock: CallClock::start(std::time::Duration::from_secs(1)),
            limits: EffectiveLimits::with_memory_mb(64),
            grants: Grants {
                folders: vec![grant("/projects/root", FolderMode::Ro), grant("/out", FolderMode::Rw)],
                ..Grants::default()
            },
            context: CallContext {
                roots: vec!["/projects/root".into()],
                data_directory: "/data/t".into(),
                ..CallContext::default()
            },
        }
    }

    #[test]
    fn refusals_are_told_with_what_would_have_let_them() {
        use Language::{JavaScript, Other, Python};
        for (language, said, hint) in [
            (
                Python,
                "FileNotFoundError: [Errno 2] No such file or directory: '/home/me/a.csv'",
                Some("\"path\": \"/home/me\", \"mode\": \"ro\""),
            ),
            (Python, "PermissionError: [Errno 13] Permission denied: '/home/me/a.csv'", Some("\"path\": \"/home/me\"")),
            (JavaScript, "Error: ENOENT: no such file or directory, open '/home/me/a.csv'", Some("\"path\": \"/home/me\"")),
            (Other, "cat: /home/me/a.csv: No such file or directory", Some("\"path\": \"/home/me\"")),
            (Other, "main.sh: line 2: /home/me/a.csv: Permission denied", Some("\"path\": \"/home/me\"")),
            (
                Other,
                "main.rb:1:in 'File#initialize': No such file or directory @ rb_sysopen - /home/me/a (Errno::ENOENT)",
                Some("/home/me"),
            ),
            (
                Other,
                "PHP Warning:  file_get_contents(/home/me/a): Failed to open stream: No such file or directory in /x/main.php",
                Some("/home/me"),
            ),
            (Other, "ls: cannot access '/home/me/a': No such file or directory", Some("\"path\": \"/home/me\"")),
            (Python, "OSError: [Errno 30] Read-only file system: '/home/me/x'", Some("\"mode\": \"rw\"")),
            (
                Python,
                "PermissionError: [Errno 13] Permission denied: '/projects/root/x'",
                Some("`/projects/root` is granted for reading only"),
            ),
            (Other, "bash: line 1: /projects/root/x: Read-only file system", Some("for reading only")),
            (JavaScript, "Error: EACCES: permission denied, open '/projects/root/x'", Some("for reading only")),
            (Python, "FileNotFoundError: [Errno 2] No such file or directory: '/projects/root/gone'", None),
            (Python, "FileNotFoundError: [Errno 2] No such file or directory: '/out/gone'", None),
            (Python, "FileNotFoundError: [Errno 2] No such file or directory: '/private/gone'", None),
            (Python, "FileNotFoundError: [Errno 2] No such file or directory: '/usr/bin/gone'", None),
            (Python, "FileNotFoundError: [Errno 2] No such file or directory: 'data/a.csv'", Some("working_directory")),
            (Other, "cat: data/a.csv: No such file or directory", Some("working_directory")),
            (JavaScript, "Error: ENOENT: no such file or directory, open 'data/a.csv'", Some("working_directory")),
            (Python, "ConnectionRefusedError: [Errno 111] Connection refused", Some("\"network\": true")),
            (JavaScript, "Error: connect ECONNREFUSED 127.0.0.1:80", Some("\"network\": true")),
            (Other, "curl: (6) Could not resolve host: example.com", Some("\"network\": true")),
            (Python, "  File \"<frozen os>\", line 685, in __getitem__\nKeyError: 'API_KEY'", Some("\"env\": [\"API_KEY\"]")),
            (Other, "main.sh: line 1: API_KEY: unbound variable", Some("\"env\": [\"API_KEY\"]")),
            (Other, "main.rb:1:in 'ENV.fetch': key not found: \"API_KEY\" (KeyError)", Some("\"env\": [\"API_KEY\"]")),
            (Python, "KeyError: 'API_KEY'", None),
            (Python, "ModuleNotFoundError: No module named 'pandas.core'", Some("dependencies: [\"pandas\"]")),
            (
                JavaScript,
                "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'lodash' imported from /x/main.mjs",
                Some("[\"lodash\"]"),
            ),
            (JavaScript, "Error: Cannot find module 'lodash/fp'", Some("[\"lodash\"]")),
            (JavaScript, "Error: Cannot find module './gone.js'", None),
            (Python, "ValueError: no such key", None),
        ] {
            let error = explain(
                ToolError::failed("`t` ended with exit code 1").with_output(said),
                &call(),
                language,
                Path::new("/private"),
            );
            assert_eq!(error.hint.is_some(), hint.is_some(), "{said}: {:?}", error.hint);
            assert!(error.hint.zip(hint).is_none_or(|(found, part)| found.contains(part)), "{said}");
        }
        let quiet = explain(ToolError::failed("`t` ended with exit code 7"), &call(), Other, Path::new("/private"));
        assert!(quiet.hint.is_some_and(|hint| hint.contains("network")));
    }
}
