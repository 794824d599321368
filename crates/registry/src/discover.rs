//! Finds the tools and skills in a folder that came from elsewhere. Nothing is run, changed, or followed out of it.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use skillz_tool::{Manifest, ToolKind, ToolName};

use crate::{
    Skill,
    layout::SKILL,
    load::Found,
    manifest_file::{self, ManifestFile},
    tree,
    walk::Walk,
};

/// Deepest folder looked into: `a/b/tools/<x>/` and more.
const DEPTH: usize = 8;
/// Folders looked into at most.
const FOLDERS: usize = 5_000;
/// Folders that hold copies, bookkeeping or other people's packages.
const PASSED_OVER: [&str; 11] =
    [".git", ".hg", ".svn", ".versions", ".staging", ".live", ".trash", ".venv", "node_modules", "__pycache__", "target"];

/// What a folder holds.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Tools, by place.
    pub tools: Vec<DiscoveredTool>,
    /// Knowledge skills, by place.
    pub skills: Vec<DiscoveredSkill>,
    /// What looks like one of them and cannot be used.
    pub faults: Vec<DiscoveryFault>,
}

/// A tool from elsewhere.
#[derive(Debug)]
pub struct DiscoveredTool {
    /// The name that its manifest gives.
    pub name: ToolName,
    /// Its manifest, with the entry file filled in.
    pub manifest: Manifest,
    /// Its folder.
    pub folder: PathBuf,
    /// Its folder, relative to where the search began; empty for that folder itself.
    pub path: String,
}

/// A skill from elsewhere.
#[derive(Debug, Clone)]
pub struct DiscoveredSkill {
    /// The skill; its directory is the folder that was searched.
    pub skill: Skill,
    /// Its folder, relative to where the search began.
    pub path: String,
    /// Folders within it that are tools or skills of their own.
    without: Vec<PathBuf>,
}

/// What looks like a tool or skill and cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryFault {
    /// Its folder, relative to where the search began.
    pub path: String,
    /// The name it gives itself, if that could be read.
    pub name: Option<String>,
    /// Why it cannot be used.
    pub reason: String,
}

impl Discovery {
    /// Looks through a folder. `fallback` names a skill at its top that does not name itself. Blocks.
    pub fn of(root: &Path, fallback: &str) -> io::Result<Self> {
        let mut search = Search { root, fallback, found: Self::default(), folders: 0 };
        search.enter(Path::new(""), 0)?;
        let mut found = search.found;
        let nested: Vec<PathBuf> = found
            .tools
            .iter()
            .map(|tool| tool.folder.clone())
            .chain(found.skills.iter().map(|skill| skill.skill.directory.clone()))
            .collect();
        for skill in &mut found.skills {
            let inside = nested.iter().filter(|folder| **folder != skill.skill.directory);
            skill.without =
                inside.filter_map(|folder| Some(folder.strip_prefix(&skill.skill.directory).ok()?.to_owned())).collect();
        }
        found.refuse_doubles();
        Ok(found)
    }

    /// What a folder itself is; what lies deeper is not looked at. Blocks.
    pub fn of_folder(root: &Path) -> io::Result<Self> {
        // Whoever cannot list the folder gets an error rather than nothing.
        fs::read_dir(root)?;
        let mut search = Search { root, fallback: "skill", found: Self::default(), folders: 0 };
        search.look_at(root, Path::new(""));
        Ok(search.found)
    }

    /// Two of one name cannot both be meant; neither is guessed at.
    fn refuse_doubles(&mut self) {
        let mut seen = BTreeSet::new();
        let doubled: BTreeSet<String> =
            self.tools.iter().filter(|tool| !seen.insert(tool.name.as_str())).map(|tool| tool.name.to_string()).collect();
        let mut skills_seen = BTreeSet::new();
        let doubled_skills: BTreeSet<String> = self
            .skills
            .iter()
            .filter(|skill| !skills_seen.insert(skill.skill.name.as_str()))
            .map(|skill| skill.skill.name.clone())
            .collect();
        let fault = |path: &str, name: &str, what: &str| DiscoveryFault {
            path: path.to_owned(),
            name: Some(name.to_owned()),
            reason: format!("There are several {what} `{name}` in this source; name the folder of one of them with `path`"),
        };
        for tool in &self.tools {
            if doubled.contains(tool.name.as_str()) {
                self.faults.push(fault(&tool.path, tool.name.as_str(), "tools"));
            }
        }
        for skill in &self.skills {
            if doubled_skills.contains(&skill.skill.name) {
                self.faults.push(fault(&skill.path, &skill.skill.name, "skills"));
            }
        }
        self.tools.retain(|tool| !doubled.contains(tool.name.as_str()));
        self.skills.retain(|skill| !doubled_skills.contains(&skill.skill.name));
    }
}

impl DiscoveredSkill {
    /// Copies its files, but not the tools and skills within it, into an empty folder.
    pub(crate) fn copy_to(&self, to: &Path) -> io::Result<()> {
        let mut walk = Walk::of(&self.skill.directory)?;
        let is_own = |path: &Path| !self.without.iter().any(|other| path.starts_with(other));
        walk.files.retain(|stamp| is_own(&stamp.path));
        walk.folders.retain(|folder| is_own(folder));
        tree::copy(&self.skill.directory, &walk, to)
    }

    /// The number of files that it would be imported with. Blocks.
    pub fn file_count(&self) -> usize {
        let is_own = |path: &Path| !self.without.iter().any(|other| path.starts_with(other));
        Walk::of(&self.skill.directory).map_or(0, |walk| walk.files.iter().filter(|stamp| is_own(&stamp.path)).count())
    }
}

struct Search<'a> {
    root: &'a Path,
    fallback: &'a str,
    found: Discovery,
    folders: usize,
}

impl Search<'_> {
    fn enter(&mut self, relative: &Path, depth: usize) -> io::Result<()> {
        self.folders += 1;
        if self.folders > FOLDERS {
            return Err(io::Error::other(format!("it has more than {FOLDERS} folders; name one of them with `path`")));
        }
        let folder = self.root.join(relative);
        // A folder of a tool is the tool's, with whatever lies in it.
        if self.look_at(&folder, relative) {
            return Ok(());
        }
        let mut inner = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_meant = name.to_str().is_some_and(|name| !PASSED_OVER.contains(&name));
            if entry.file_type()?.is_dir() && is_meant && depth < DEPTH {
                inner.push(relative.join(name));
            }
        }
        inner.sort_unstable();
        inner.iter().try_for_each(|inner| self.enter(inner, depth + 1))
    }

    /// Says whether the folder is a tool, or was meant to be one.
    fn look_at(&mut self, folder: &Path, relative: &Path) -> bool {
        let path = relative.to_string_lossy().into_owned();
        let fault = |name: Option<String>, reason: String| DiscoveryFault { path: path.clone(), name, reason };
        let (manifest, file) = match manifest_file::read(folder) {
            Ok(ManifestFile::Tool(manifest, file)) => (*manifest, file),
            Ok(ManifestFile::Skill) => {
                self.add_skill(folder, relative, path);
                return false;
            }
            Ok(ManifestFile::Missing) => return false,
            Err(problem) => {
                let file = problem.file.strip_prefix(self.root).unwrap_or(&problem.file).display().to_string();
                let line = problem.line.map_or_else(String::new, |line| format!(", line {line}"));
                self.found.faults.push(fault(None, format!("`{file}`{line}: {}", problem.reason)));
                return true;
            }
        };
        match read_tool(folder, manifest, file) {
            Ok((name, manifest)) => self.found.tools.push(DiscoveredTool { name, manifest, folder: folder.to_owned(), path }),
            Err((name, reason)) => self.found.faults.push(fault(Some(name), reason)),
        }
        true
    }

    fn add_skill(&mut self, folder: &Path, relative: &Path, path: String) {
        let fallback = relative.file_name().and_then(|name| name.to_str()).unwrap_or(self.fallback);
        let reason = match Skill::read(folder, fallback) {
            Ok(Ok(skill)) => return self.found.skills.push(DiscoveredSkill { skill, path, without: Vec::new() }),
            Ok(Err(reason)) => reason,
            Err(error) => format!("Its `{SKILL}` cannot be read: {error}"),
        };
        self.found.faults.push(DiscoveryFault { path, name: None, reason });
    }
}

fn read_tool(folder: &Path, manifest: Manifest, file: &'static str) -> Result<(ToolName, Manifest), (String, String)> {
    let given = manifest.name.clone();
    let failed = |reason: String| (given.chars().take(80).collect(), reason);
    let name = ToolName::for_existing(&manifest.name).map_err(|error| failed(error.to_string()))?;
    if manifest.tool_type == ToolKind::Mcp {
        let reason = "It belongs to an MCP server; add that server with `import_mcp`, and its tools come with it";
        return Err(failed(reason.to_owned()));
    }
    let walk = Walk::of(folder).map_err(|error| failed(format!("Its files cannot be read: {error}")))?;
    let found = Found::new(name.clone(), folder.to_owned(), walk, manifest, file);
    match found {
        Ok(Ok(found)) => Ok((name, found.manifest)),
        Ok(Err(reason)) => Err(failed(reason)),
        Err(error) => Err(failed(format!("Its files cannot be read: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn manifest(name: &str) -> String {
        format!(r#"{{"name": "{name}", "description": "d", "tool_type": "script", "entry_file": "main.py"}}"#)
    }

    #[test]
    fn tools_and_skills_are_found_at_any_depth() {
        let (a, b, c) = (manifest("a"), manifest("b"), manifest("c"));
        let files = folder(&[
            ("README.md", "x"),
            ("tools/a/manifest.json", &a),
            ("tools/a/main.py", "1"),
            ("tools/a/vendored/manifest.json", &c),
            ("deep/er/b/manifest.json", &b),
            ("deep/er/b/main.py", "1"),
            ("old/SKILL.md", "---\nname: old\ndescription: d\ntool_type: script\ninterpreter: bash\n---\n# Old\n"),
            ("old/main.sh", "1"),
            (".claude/skills/pdf/SKILL.md", "Reads PDFs."),
            (".claude/skills/pdf/forms/a.md", "x"),
            ("node_modules/c/manifest.json", &c),
            (".trash/c/manifest.json", &c),
        ]);
        let found = Discovery::of(files.path(), "top").unwrap();
        let names: Vec<_> = found.tools.iter().map(|tool| (tool.name.as_str(), tool.path.as_str())).collect();
        assert_eq!(names, [("b", "deep/er/b"), ("old", "old"), ("a", "tools/a")]);
        let old = found.tools.iter().find(|tool| tool.name.as_str() == "old").unwrap();
        assert_eq!(old.manifest.entry_file.as_deref(), Some("main.sh"));
        let skill = found.skills.first().unwrap();
        assert_eq!((skill.skill.name.as_str(), skill.file_count(), found.skills.len()), ("pdf", 2, 1));
        assert_eq!(found.faults, []);
    }

    #[test]
    fn a_skill_at_the_top_leaves_out_the_tools_within() {
        let a = manifest("a");
        let files = folder(&[("SKILL.md", "Text."), ("notes.md", "x"), ("tools/a/manifest.json", &a), ("tools/a/main.py", "1")]);
        let found = Discovery::of(files.path(), "top").unwrap();
        let skill = found.skills.first().unwrap();
        assert_eq!((skill.skill.name.as_str(), skill.file_count(), found.tools.len()), ("top", 2, 1));
        let copy = tempfile::tempdir().unwrap();
        skill.copy_to(copy.path()).unwrap();
        assert!(copy.path().join("notes.md").exists() && !copy.path().join("tools/a").exists());
    }

    #[test]
    fn what_cannot_be_used_says_why_and_hides_nothing() {
        let good = manifest("good");
        let twice = manifest("twice");
        let mut files = vec![
            ("good/manifest.json".to_owned(), good),
            ("good/main.py".to_owned(), "1".to_owned()),
            ("json/manifest.json".to_owned(), "{".to_owned()),
            ("empty/manifest.json".to_owned(), manifest("empty")),
            ("mcp/manifest.json".to_owned(), r#"{"name": "m", "description": "d", "tool_type": "mcp"}"#.to_owned()),
        ];
        for (index, name) in ["../../x", "/etc/x", "a/b", "", "list_tools", "."].into_iter().enumerate() {
            files.push((format!("bad{index}/manifest.json"), manifest(name)));
            files.push((format!("bad{index}/main.py"), "1".to_owned()));
        }
        for place in ["one", "two"] {
            files.push((format!("{place}/manifest.json"), twice.clone()));
            files.push((format!("{place}/main.py"), "1".to_owned()));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let files = folder(&files);
        let found = Discovery::of(files.path(), "top").unwrap();
        let names: Vec<_> = found.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["good"]);
        assert_eq!(found.faults.len(), 11, "{:#?}", found.faults);
        let reason = |path: &str| found.faults.iter().find(|fault| fault.path == path).unwrap().reason.clone();
        assert!(reason("json").contains("`json/manifest.json`, line 1: "), "{}", reason("json"));
        assert!(reason("empty").contains("The source `main.py` is missing"), "{}", reason("empty"));
        assert!(reason("bad0").contains("../../x"), "{}", reason("bad0"));
        assert!(reason("two").contains("several tools `twice`"), "{}", reason("two"));
    }
}
