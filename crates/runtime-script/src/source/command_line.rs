//! Reads off a program what it wants on its command line, for the `argv` that is proposed where there is none.

use ruff_python_ast::{
    Expr, ExprCall,
    visitor::{self, Visitor},
};
use ruff_python_parser::parse_module;
use skillz_json::{Value, json};

use crate::language::Language;

/// Where programs find what stands at a position of their command line, and which position the first one is.
const POSITIONS: [(&str, usize); 7] =
    [("process.argv[", 2), ("Deno.args[", 0), ("Bun.argv[", 2), ("sys.argv[", 1), ("ARGV[", 0), ("$argv[", 1), ("arg[", 1)];
/// Where they find all of it.
const ALL: [&str; 8] = ["argv[1:]", "argv.slice(2)", "Deno.args", "ARGV.", "@ARGV", "\"$@\"", "$*", "array_slice($argv"];

/// What to tell of a program that reads its command line and has no `argv`: one that fits, by its own words.
pub(crate) fn note(language: Language, text: &str, schema: Option<&Value>) -> String {
    let fitting = match language {
        Language::Python => declared(text),
        _ => Vec::new(),
    };
    let fitting = if fitting.is_empty() { positions(language, text, schema) } else { fitting };
    let fitting = if fitting.is_empty() { vec![json!("$input.path"), json!(["--limit", "$input.limit"])] } else { fitting };
    format!(
        "It reads its command line, which is empty without `argv`. Register it again with one such as `\"argv\": {}`; a list in it \
         is left out where its argument is absent",
        Value::Array(fitting)
    )
}

/// What argparse and click are told of: positions first, so that no option before them takes their values.
fn declared(text: &str) -> Vec<Value> {
    let Ok(parsed) = parse_module(text) else { return Vec::new() };
    let mut declared = Declared::default();
    parsed.syntax().body.iter().for_each(|statement| declared.visit_stmt(statement));
    declared.positions.into_iter().chain(declared.options).collect()
}

#[derive(Default)]
struct Declared {
    positions: Vec<Value>,
    options: Vec<Value>,
}

impl<'a> Visitor<'a> for Declared {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && let Expr::Attribute(attribute) = &*call.func
            && matches!(attribute.attr.as_str(), "add_argument" | "argument" | "option")
        {
            self.take(call);
        }
        visitor::walk_expr(self, expression);
    }
}

impl Declared {
    fn take(&mut self, call: &ExprCall) {
        let texts: Vec<&str> = call.arguments.args.iter().filter_map(text_of).collect();
        let keyword = |name: &str| call.arguments.find_keyword(name).map(|keyword| &keyword.value);
        let Some(first) = texts.first() else { return };
        if !first.starts_with('-') {
            let may_be_absent = keyword("nargs").and_then(text_of).is_some_and(|count| matches!(count, "?" | "*"));
            let reference = json!(format!("$input.{}", first.replace('-', "_")));
            self.positions.push(if may_be_absent { json!([reference]) } else { reference });
            return;
        }
        let flag = texts.iter().find(|text| text.starts_with("--")).unwrap_or(first);
        let flag = flag.split('/').next().unwrap_or(flag);
        let named = keyword("dest").and_then(text_of).or_else(|| texts.iter().copied().find(|text| !text.starts_with('-')));
        let name = named.map_or_else(|| flag.trim_start_matches('-').replace('-', "_"), str::to_owned);
        self.options.push(json!([flag, format!("$input.{name}")]));
    }
}

fn text_of(expression: &Expr) -> Option<&str> {
    expression.as_string_literal_expr().map(|text| text.value.to_str())
}

/// What stands at each position, named by the schema, or by the variable that it is put into.
fn positions(language: Language, text: &str, schema: Option<&Value>) -> Vec<Value> {
    let mut names: Vec<Option<String>> = Vec::new();
    for line in text.lines() {
        for (position, before) in line_positions(language, line) {
            if names.len() < position {
                names.resize(position, None);
            }
            if let (Some(name), Some(place)) = (assigned(before), names.get_mut(position - 1)) {
                place.get_or_insert(name);
            }
        }
    }
    let properties: Vec<&String> =
        schema.and_then(|schema| schema.get("properties")?.as_object()).map(|object| object.keys().collect()).unwrap_or_default();
    if names.is_empty() && ALL.iter().any(|all| text.contains(all)) {
        return vec![json!(format!("$input.{}", properties.first().map_or("args", |name| name.as_str())))];
    }
    let named = |(index, name): (usize, Option<String>)| {
        let known = name.clone().filter(|name| properties.is_empty() || properties.contains(&name));
        let name = known.or_else(|| properties.get(index).map(|name| (*name).clone()));
        json!(format!("$input.{}", name.unwrap_or_else(|| format!("arg{}", index + 1))))
    };
    names.into_iter().enumerate().map(named).collect()
}

/// The positions that a line reads, from 1, each with what stands before it.
fn line_positions(language: Language, line: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (marker, first) in POSITIONS {
        for (index, _) in line.match_indices(marker) {
            let rest = line.get(index + marker.len()..).unwrap_or_default();
            let number = rest.split(']').next().and_then(|number| number.parse::<usize>().ok());
            if let Some(position) =
                number.and_then(|number| (number + 1).checked_sub(first)).filter(|position| (1..=9).contains(position))
            {
                found.push((position, line.get(..index).unwrap_or_default()));
            }
        }
        if !found.is_empty() {
            return found;
        }
    }
    if language == Language::Other && !line.trim_start().starts_with('#') {
        for (index, _) in line.match_indices('$') {
            let digit = line.get(index + 1..).unwrap_or_default().trim_start_matches('{').chars().next();
            if let Some(position @ 1..) = digit.and_then(|digit| digit.to_digit(10)) {
                found.push((position as usize, line.get(..index).unwrap_or_default()));
            }
        }
    }
    found
}

/// The variable that a line puts a value into: `const name = Number(`, `local name="`, `my $name = `.
fn assigned(before: &str) -> Option<String> {
    let (left, right) = before.rsplit(';').next()?.split_once('=')?;
    // What is compared, or put into more than one, has no one name.
    if right.starts_with(['=', '>']) || left.ends_with(['!', '<', '>']) || left.contains(',') || right.contains(['+', ',']) {
        return None;
    }
    let name = left.trim().rsplit([' ', ':']).next()?.trim_start_matches(['$', '@']);
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    is_name.then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fitting_command_line_is_found() {
        use Language::{JavaScript, Other, Python};
        for (language, text, argv) in [
            (
                Python,
                "import argparse\np = argparse.ArgumentParser()\np.add_argument('--dry-run', action='store_true')\n\
                 p.add_argument('path')\np.add_argument('-n', '--limit', type=int, dest='most')\np.add_argument('rest', nargs='*')",
                json!(["$input.path", ["$input.rest"], ["--dry-run", "$input.dry_run"], ["--limit", "$input.most"]]),
            ),
            (
                Python,
                "import click\n@click.command()\n@click.option('--count', default=1)\n@click.argument('name')\ndef main(count, name): ...\nmain()",
                json!(["$input.name", ["--count", "$input.count"]]),
            ),
            (Python, "import sys\npath = sys.argv[1]\nn = int(sys.argv[2])", json!(["$input.path", "$input.n"])),
            (Python, "import sys\nprint(sys.argv[2], sys.argv[1])", json!(["$input.arg1", "$input.arg2"])),
            (Python, "import sys\nprint(sys.argv[1:])", json!(["$input.args"])),
            (JavaScript, "const name = process.argv[2];\nconst n = Number(process.argv[3])", json!(["$input.name", "$input.n"])),
            (JavaScript, "const args = process.argv.slice(2)", json!(["$input.args"])),
            (Other, "echo \"Hello $1\"", json!(["$input.arg1"])),
            (Other, "local NAME=\"$1\"; n=${2:-5}", json!(["$input.name", "$input.n"])),
            (Other, "for f in \"$@\"; do echo $f; done", json!(["$input.args"])),
            (Other, "puts ARGV[0]", json!(["$input.arg1"])),
            (Other, "my $path = $ARGV[0];", json!(["$input.path"])),
            (Other, "<?php $n = $argv[1];", json!(["$input.n"])),
        ] {
            let note = note(language, text, None);
            assert!(note.contains(&format!("`\"argv\": {argv}`")), "{text}: {note}");
        }
        let schema = json!({"properties": {"who": {}, "n": {}}});
        assert!(note(Other, "echo \"Hello $1\"", Some(&schema)).contains("[\"$input.who\"]"));
        assert!(note(Python, "import getopt", None).contains("$input.path"));
    }
}
