//! Help for a name that a program uses and nothing has.

use crate::{
    names::{closest, identifier_of},
    request::{CodeRequest, Language},
};

/// Modules of Python that programs use without an import, by the name that they use.
const MODULES: &str = "abc argparse array ast asyncio base64 binascii bisect calendar cmath collections colorsys configparser contextlib copy csv \
    dataclasses datetime decimal difflib email enum fnmatch fractions functools gc glob graphlib gzip hashlib heapq hmac html http inspect io \
    ipaddress itertools json keyword linecache locale logging math mimetypes numbers operator os pathlib pickle platform pprint queue random re \
    secrets shlex shutil signal socket sqlite3 ssl stat statistics string struct subprocess sys tempfile textwrap threading time timeit token \
    traceback types typing unicodedata urllib uuid warnings weakref xml zipfile zlib zoneinfo";
/// What programs use by itself of a module, with the module.
const MEMBERS: [(&str, &str); 12] = [
    ("Counter", "collections"),
    ("Path", "pathlib"),
    ("dataclass", "dataclasses"),
    ("date", "datetime"),
    ("defaultdict", "collections"),
    ("deque", "collections"),
    ("namedtuple", "collections"),
    ("partial", "functools"),
    ("reduce", "functools"),
    ("timedelta", "datetime"),
    ("timezone", "datetime"),
    ("sleep", "time"),
];

/// Help for the name that a failure says is not defined: what to import, a tool that may not be called here, or tools
/// that are called nearly so.
pub(crate) fn for_name(message: &str, request: &CodeRequest) -> Option<String> {
    let python = message.strip_prefix("NameError: name '").and_then(|rest| rest.split_once('\''));
    let javascript = message.strip_prefix("ReferenceError: ").and_then(|rest| rest.split_once(" is not defined"));
    let (name, _) = python.or(javascript)?;
    let is = |tool: &&String| tool.as_str() == name || identifier_of(tool) == name;
    if let Some(tool) = request.excluded.iter().find(is) {
        return Some(format!(
            "The tool `{tool}` exists, but this run's `tools` leave it out: name it there, or leave `tools` out"
        ));
    }
    if request.language == Language::Python {
        if MODULES.split_ascii_whitespace().any(|module| module == name) {
            return Some(format!("Put `import {name}` in front"));
        }
        if let Some((member, module)) = MEMBERS.iter().find(|(member, _)| *member == name) {
            return Some(format!("Put `from {module} import {member}` in front"));
        }
    }
    let near = closest(name, &request.tools);
    if near.is_empty() {
        return Some(
            "`skillz.search(\"...\")` finds tools by what they do; `call(\"name\", {...})` reaches each by its name".to_owned(),
        );
    }
    Some(format!("Tools with such a name: `{}`. `call(\"name\", {{...}})` reaches each by its name", near.join("`, `")))
}
