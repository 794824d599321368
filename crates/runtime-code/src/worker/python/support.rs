//! What a program needs and the embedded interpreter lacks, found before anything has run.
//!
//! The interpreter itself is asked: a tiny program that imports a module, or reads a name, shows whether it is there.
//! So there is no list here that could fall behind.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use monty::{MontyRun, RunProgress};
use monty_types::{CompileOptions, ExcType, PrintWriter, ResourceTracker};

use super::analysis::{Facts, OWN_ASYNCIO};

/// Built-in functions of Python that a program may mean; a name that is neither of these nor its own is its fault.
const BUILTINS: &str = "abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex copyright \
    credits delattr dict dir divmod enumerate eval exec exit filter float format frozenset getattr globals hasattr hash help hex id input \
    int isinstance issubclass iter len list locals map max memoryview min next object oct open ord pow print property quit range repr \
    reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip __import__";

/// Special methods of classes that the embedded interpreter calls. It takes others silently and never calls them, so
/// these cannot be asked for one by one like the rest.
const SPECIAL_METHODS: [&str; 13] = [
    "__init__",
    "__repr__",
    "__str__",
    "__eq__",
    "__ne__",
    "__hash__",
    "__iter__",
    "__next__",
    "__contains__",
    "__enter__",
    "__exit__",
    "__index__",
    "__post_init__",
];

/// Most answers that are kept: programs may name anything.
const MOST_KNOWN: usize = 4_096;

thread_local! {
    /// Answers so far; they never change.
    static KNOWN: RefCell<HashMap<String, bool>> = RefCell::default();
}

/// What is missing, in words; `None` where all is there.
pub(crate) fn missing(facts: &Facts, tools: &HashSet<&str>) -> Option<String> {
    for module in &facts.modules {
        if !has(&format!("import {module}")) {
            return Some(format!("the embedded interpreter has no module `{module}`"));
        }
    }
    for (module, member) in &facts.members {
        if module != "__future__" && !has(&format!("from {module} import {member}")) {
            return Some(format!("the embedded interpreter has no `{member}` in the module `{module}`"));
        }
    }
    for (module, attribute) in &facts.attributes {
        let is_own = module == "asyncio" && OWN_ASYNCIO.contains(&attribute.as_str());
        if !is_own && !has(&format!("import {module}\n{module}.{attribute}")) {
            return Some(format!("the embedded interpreter has no `{module}.{attribute}`"));
        }
    }
    if let Some(method) = facts.special_methods.iter().find(|method| !SPECIAL_METHODS.contains(&method.as_str())) {
        return Some(format!("the embedded interpreter has no special method `{method}`"));
    }
    if let Some((form, _)) = facts.forms.iter().find(|(_, program)| !has(program)) {
        return Some(format!("the embedded interpreter has no {form}"));
    }
    if let Some(builtin) = &facts.callback {
        return Some(format!("the embedded interpreter's `{builtin}` cannot call tools"));
    }
    let mut builtins = BUILTINS.split_ascii_whitespace();
    let lacking =
        |name: &&str| facts.read.contains(*name) && !facts.bound.contains(*name) && !tools.contains(*name) && !has(name);
    builtins.find(lacking).map(|name| format!("the embedded interpreter has no `{name}`"))
}

/// Built-in names that the program uses as names of its own, which the embedded interpreter has. At top level it takes such
/// a name in a comprehension for the built-in, unless it is a variable already.
pub(crate) fn reused_builtins<'a>(facts: &'a Facts, tools: &'a HashSet<&str>) -> impl Iterator<Item = &'static str> + 'a {
    BUILTINS.split_ascii_whitespace().filter(|name| facts.bound.contains(*name) && !tools.contains(*name) && has(name))
}

/// Whether an exception may tell of a gap: a real interpreter perhaps would not have raised it.
pub(crate) fn is_doubtful(exception: ExcType, is_lazy: bool) -> bool {
    let kinds =
        [ExcType::AttributeError, ExcType::TypeError, ExcType::NotImplementedError, ExcType::NameError, ExcType::SyntaxError];
    let is_kind = |kind: ExcType| exception == kind || exception.is_subclass_of(kind);
    kinds.into_iter().any(is_kind) || (is_lazy && is_kind(ExcType::Exception) && !is_kind(ExcType::MemoryError))
}

/// Whether an exception tells of a gap of the embedded interpreter, and not of a fault of the program.
pub(crate) fn is_gap(exception: ExcType, message: &str) -> bool {
    if exception == ExcType::NotImplementedError {
        return true;
    }
    let says_so =
        ["not yet supported", "argument is not supported", "are not supported", "or slices, not slice", "'list' object to bytes"];
    let dicts = message.starts_with("unsupported operand type(s) for |") && message.contains("'dict' and 'dict'");
    let percent = message.starts_with("unsupported operand type(s) for %: 'str'");
    dicts || percent || says_so.iter().any(|part| message.contains(part))
}

/// Whether a tiny program runs without an exception. One that asks for the operating system got as far as that.
pub(super) fn has(program: &str) -> bool {
    ask(program, false)
}

/// Whether a tiny program finds the attributes that it uses, whatever it comes to then.
pub(super) fn has_attribute(program: &str) -> bool {
    ask(program, true)
}

fn ask(program: &str, is_forgiving: bool) -> bool {
    let question = if is_forgiving { format!("{program}?") } else { program.to_owned() };
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&question).copied()) {
        return known;
    }
    let started = MontyRun::new(program.to_owned(), "probe.py", Vec::new(), CompileOptions::default())
        .and_then(|run| run.start(Vec::new(), ResourceTracker::default(), PrintWriter::Disabled));
    let is_there = match started {
        Ok(RunProgress::Complete(_) | RunProgress::OsCall(_)) => true,
        Ok(_) => false,
        Err(error) => is_forgiving && error.exc_type() != ExcType::AttributeError,
    };
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(question, is_there)
    });
    is_there
}

#[cfg(test)]
mod tests {
    use ruff_python_parser::parse_module;

    use super::*;

    fn missing_in(program: &str) -> Option<String> {
        let parsed = parse_module(program).expect(program);
        let tools = HashSet::from(["word_count"]);
        missing(&Facts::of(&parsed.syntax().body, &tools), &tools)
    }

    #[test]
    fn only_what_is_not_there_is_missing() {
        for program in [
            "1 + 1",
            "import json, re, math\njson.dumps(re.findall('a', 'a'))",
            "from datetime import datetime\ndatetime.now()",
            "import asyncio\nasyncio.run(f())\nasyncio.create_task(g())\nasyncio.sleep(1)",
            "from asyncio import gather, sleep",
            "import skillz\nskillz.search('x')",
            "from skillz import memory",
            "print(open('x').read())",
            "undefined_name(1)",
            "word_count(text='a')",
            "import os\nos.getenv('X')\nos.environ",
            "from __future__ import annotations",
            "def eval(x): return x\neval(1)",
            "from dataclasses import dataclass\nfrom collections import Counter",
            "5 % 3",
            "class A:\n    def __init__(self): pass\n    def __str__(self): return ''",
            "sorted([2, 1], key=lambda x: -x)",
            "list(map(str, [1]))",
            "max(word_count(text='a'))",
            "[word_count(text=t) for t in 'ab']",
        ] {
            assert_eq!(missing_in(program), None, "{program}");
        }
        for (program, part) in [
            ("import numpy", "no module `numpy`"),
            ("import numpy as np\nnp.array([1])", "no module `numpy`"),
            ("def f():\n    import subprocess", "no module `subprocess`"),
            ("from os import path, system", "no `path` in the module `os`"),
            ("import os\nos.system('id')", "no `os.system`"),
            ("import asyncio\nasyncio.Semaphore(3)", "no `asyncio.Semaphore`"),
            ("eval('1')", "no `eval`"),
            ("__import__('os')", "no `__import__`"),
            ("'%s' % 1", "no `%` for texts"),
            ("x = {'a': 1}\nx | {'b': 2}", "no `|` for dicts"),
            ("x = [1]\nx[0:] = [2]", "no assignment to slices"),
            ("import sys\nprint(1, file=sys.stderr)", "no `file` of `print`"),
            ("import re\nre.sub('a', lambda m: 'b', 'a')", "no functions in `re.sub`"),
            ("class A:\n    def __len__(self): return 1", "no special method `__len__`"),
            ("list(map(word_count, 'ab'))", "`map` cannot call tools"),
            ("sorted('ab', key=lambda t: word_count(text=t))", "`sorted` cannot call tools"),
            ("def f(t): return call('word_count', {'text': t})\nx = ['a']\nx.sort(key=f)", "`sort` cannot call tools"),
        ] {
            let found = missing_in(program);
            assert!(found.as_deref().is_some_and(|found| found.contains(part)), "{program}: {found:?}");
        }
    }
}
