//! PEP 508 requirements, read by their grammar: whatever is left over is no part of one, such as an option of pip.

/// What versions are compared with; longer ones come before what they begin with.
pub(crate) const OPERATORS: [&str; 8] = ["===", "==", ">=", "<=", "!=", "~=", ">", "<"];
/// What markers ask for; the ones with a dot are old spellings.
const VARIABLES: [&str; 20] = [
    "python_version",
    "python_full_version",
    "os_name",
    "sys_platform",
    "platform_release",
    "platform_system",
    "platform_version",
    "platform_machine",
    "platform_python_implementation",
    "implementation_name",
    "implementation_version",
    "extra",
    "extras",
    "dependency_groups",
    "os.name",
    "sys.platform",
    "platform.version",
    "platform.machine",
    "platform.python_implementation",
    "python_implementation",
];

/// Whether a text is one requirement of the package index: `name[extra] >=1,<2 ; marker`.
pub(crate) fn is_requirement(text: &str) -> bool {
    let mut reader = Reader(text);
    text.is_ascii() && reader.name_and_extras() && reader.versions() && reader.end_or_marker()
}

/// Whether a text is one place to install from: a URL or a path, or `name @ URL ; marker`.
pub(crate) fn is_place(text: &str) -> bool {
    let mut named = Reader(text);
    let mut reader = if named.name_and_extras() && named.takes("@") { named } else { Reader(text) };
    let place = reader.while_true(|character| !character.is_whitespace());
    !place.is_empty() && !place.contains('$') && reader.end_or_marker()
}

/// What is left to read.
struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn takes(&mut self, part: &str) -> bool {
        self.0 = self.0.trim_start_matches([' ', '\t']);
        let rest = self.0.strip_prefix(part);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn while_true(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        self.0 = self.0.trim_start_matches([' ', '\t']);
        let (taken, rest) = self.0.split_at(self.0.find(|character| !fits(character)).unwrap_or(self.0.len()));
        self.0 = rest;
        taken
    }

    fn identifier(&mut self) -> bool {
        let name = self.while_true(|character| character.is_ascii_alphanumeric() || "-_.".contains(character));
        let is_sound = |end: Option<char>| end.is_some_and(|end| end.is_ascii_alphanumeric());
        is_sound(name.chars().next()) && is_sound(name.chars().next_back())
    }

    fn list(&mut self, item: impl Fn(&mut Self) -> bool) -> bool {
        loop {
            if !item(self) {
                return false;
            }
            if !self.takes(",") {
                return true;
            }
        }
    }

    fn name_and_extras(&mut self) -> bool {
        self.identifier() && (!self.takes("[") || self.takes("]") || self.list(Self::identifier) && self.takes("]"))
    }

    fn versions(&mut self) -> bool {
        if self.takes("(") {
            return self.list(Self::version) && self.takes(")");
        }
        !self.0.trim_start_matches([' ', '\t']).starts_with(['=', '<', '>', '!', '~']) || self.list(Self::version)
    }

    fn version(&mut self) -> bool {
        let fits = |character: char| character.is_ascii_alphanumeric() || "-_.*+!".contains(character);
        OPERATORS.iter().any(|operator| self.takes(operator)) && !self.while_true(fits).is_empty()
    }

    fn end_or_marker(&mut self) -> bool {
        (!self.takes(";") || self.marker(0)) && self.while_true(|_| false).is_empty() && self.0.is_empty()
    }

    /// Conditions, joined and nested; deeper than anybody writes is refused.
    fn marker(&mut self, depth: usize) -> bool {
        loop {
            let is_sound =
                if self.takes("(") { depth < 10 && self.marker(depth + 1) && self.takes(")") } else { self.condition() };
            if !is_sound || !(self.word("and") || self.word("or")) {
                return is_sound;
            }
        }
    }

    fn condition(&mut self) -> bool {
        let compares = |reader: &mut Self| {
            OPERATORS.iter().any(|operator| reader.takes(operator))
                || reader.word("in")
                || reader.word("not") && reader.word("in")
        };
        self.operand() && compares(self) && self.operand()
    }

    fn operand(&mut self) -> bool {
        for quote in ["'", "\""] {
            if self.takes(quote) {
                // pip reads what stands after a space and a dash as an option of its own, quoted or not.
                let (text, rest) = self.0.split_once(quote).unwrap_or((" -", ""));
                self.0 = rest;
                return text.chars().all(|character| !"\\$#`".contains(character)) && !text.contains(" -");
            }
        }
        let variable = self.while_true(|character| character.is_ascii_alphanumeric() || "_.".contains(character));
        VARIABLES.contains(&variable)
    }

    fn word(&mut self, word: &str) -> bool {
        let before = self.0;
        let is_there = self.while_true(|character| character.is_ascii_alphabetic()) == word;
        if !is_there {
            self.0 = before;
        }
        is_there
    }
}
