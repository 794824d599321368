//! Checks dependencies before any installer sees them: none can be an option, a second line, or, without the
//! permission for it, a URL or a path.

use crate::{
    EnvironmentError, Language,
    requirement::{is_place, is_requirement},
};

/// Longest specifier, in bytes.
const LENGTH: usize = 500;
/// Most dependencies of one tool.
const MOST: usize = 200;

/// Checks all, and gives them trimmed. With `from_anywhere`, URLs and paths are taken too.
pub(crate) fn check(language: Language, dependencies: &[String], from_anywhere: bool) -> Result<Vec<String>, EnvironmentError> {
    if dependencies.len() > MOST {
        return Err(refused(
            &format!("{} and {} more", dependencies.first().map_or("", String::as_str), dependencies.len() - 1),
            &format!("is one of too many; at most {MOST} are taken"),
        ));
    }
    dependencies
        .iter()
        .map(|specifier| check_one(language, specifier, from_anywhere).map(|()| specifier.trim().to_owned()))
        .collect()
}

fn check_one(language: Language, specifier: &str, from_anywhere: bool) -> Result<(), EnvironmentError> {
    let text = specifier.trim();
    if text.is_empty() {
        return Err(refused(specifier, "is empty"));
    }
    if text.len() > LENGTH {
        return Err(refused(specifier, "is too long"));
    }
    let breaks_line = |character: char| character.is_control() || character.is_whitespace() && character != ' ';
    if text.chars().any(breaks_line) || text.contains(['`', '\\']) || text.contains(" #") {
        return Err(refused(specifier, "has a character that no package name or version has"));
    }
    // A dash alone stands between the versions of an npm range.
    if text.split(' ').any(|word| word.len() > 1 && word.starts_with('-')) {
        return Err(refused(specifier, "holds an option of the installer, and none is taken"));
    }
    if is_location(language, text) {
        if from_anywhere {
            let is_one = language == Language::Node && !text.contains(' ') || language == Language::Python && is_place(text);
            return if is_one { Ok(()) } else { Err(refused(specifier, "is more than one URL or path")) };
        }
        let reason =
            "is a URL or a path; packages come from the package index, by name. The permission `install_scripts` allows both";
        return Err(refused(specifier, reason));
    }
    let fits = match language {
        Language::Python => is_requirement(text),
        Language::Node => is_npm_specifier(text),
    };
    if fits {
        return Ok(());
    }
    Err(refused(
        specifier,
        match language {
            Language::Python => {
                "is no requirement by PEP 508 and nothing else; write `name`, `name==1.2`, `name[extra]>=1,<2; python_version < '3.12'`"
            }
            Language::Node => "is no npm specifier; write `name`, `name@1.2.3`, `@scope/name@^1`",
        },
    ))
}

fn refused(specifier: &str, reason: &str) -> EnvironmentError {
    EnvironmentError::Specifier { specifier: specifier.trim().chars().take(100).collect(), reason: reason.to_owned() }
}

/// Whether a specifier names a place rather than a package of the index.
pub(crate) fn is_location(language: Language, text: &str) -> bool {
    let after_name = match language {
        Language::Python => text.split_once('@').map_or(text, |(_, place)| place).trim(),
        Language::Node => text.strip_prefix('@').unwrap_or(text).split_once('@').map_or(text, |(_, place)| place),
    };
    let is_archive = [".tar.gz", ".tgz", ".zip", ".whl", ".tar.bz2"].iter().any(|suffix| text.ends_with(suffix));
    let has_scheme = after_name.contains("://")
        || ["git+", "git:", "file:", "github:", "gitlab:", "npm:", "link:", "http:", "https:"]
            .iter()
            .any(|scheme| after_name.starts_with(scheme));
    let is_path = text.starts_with(['.', '/', '~'])
        || after_name.starts_with(['.', '/', '~']) && language == Language::Node && after_name.contains('/');
    let names_direct = language == Language::Python && text.contains('@');
    // `user/repository` is short for GitHub with npm.
    let is_short_repository = language == Language::Node && !text.starts_with('@') && text.contains('/')
        || language == Language::Node && after_name != text && after_name.contains('/');
    is_archive || has_scheme || is_path || names_direct || is_short_repository
}

/// `name@range`, `@scope/name@range`.
fn is_npm_specifier(text: &str) -> bool {
    let (name, range) = split_npm(text);
    let plain = match name.strip_prefix('@') {
        Some(scoped) => match scoped.split_once('/') {
            Some((scope, plain)) if is_npm_name(scope) => plain,
            _ => return false,
        },
        None => name,
    };
    let range_fits = range.is_none_or(|range| {
        !range.trim().is_empty()
            && range.chars().all(|character| character.is_ascii_alphanumeric() || " .^~<>=|*+-".contains(character))
    });
    is_npm_name(plain) && range_fits
}

fn is_npm_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['.', '_', '-'])
        && name.len() <= 214
        && name.chars().all(|character| character.is_ascii_alphanumeric() || "-._~".contains(character))
}

/// Name and range of an npm specifier.
pub(crate) fn split_npm(text: &str) -> (&str, Option<&str>) {
    let offset = usize::from(text.starts_with('@'));
    match text.get(offset..).and_then(|rest| rest.find('@')) {
        Some(position) => {
            let (name, range) = text.split_at(position + offset);
            (name, range.get(1..))
        }
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(language: Language, text: &str) -> bool {
        check(language, &[text.to_owned()], false).is_ok()
    }

    #[test]
    fn requirements_of_every_usual_form_are_taken() {
        for text in [
            "six",
            "six==1.17.0",
            "requests >= 2, < 3",
            "uvicorn[standard]",
            "uvicorn[standard, http2]~=0.3",
            "Pillow!=9.0.*",
            "zope.interface",
            "typing_extensions>=4; python_version < '3.11'",
            "torch==2.1.0+cpu",
            "a",
            "pip (>=1,<2)",
            "a[]",
            "a ; python_version>'3' and (os_name == \"nt\" or 'linux' in sys_platform)",
            "a;python_version not in '3.8, 3.9'",
            "a; extra == 'x'",
            "a~=1.0 ; os.name=='posix'",
            "a===1.0-weird",
            "a>=1!2.0.post1",
        ] {
            assert!(taken(Language::Python, text), "{text}");
        }
        for text in [
            "left-pad",
            "left-pad@1.3.0",
            "@types/node@^20",
            "lodash@>=4 <5",
            "chalk@latest",
            "a@1.x || 2.x",
            "a@1.2 - 2.3",
            "JSONStream",
        ] {
            assert!(taken(Language::Node, text), "{text}");
        }
    }

    #[test]
    fn options_places_and_nonsense_are_refused() {
        for text in [
            "",
            "  ",
            "-r /etc/passwd",
            "--index-url=http://evil",
            "six\n--index-url x",
            "git+https://x/y",
            "x @ https://h/x.whl",
            "./local",
            "/abs/path",
            "../up",
            "file:///x",
            "x.tar.gz",
            "six=1",
            "six==",
            "[extra]",
            "six;import os`x`",
            "a b",
            "-e .",
            "six @ file:///x",
            "~/x",
            "six[",
            "six #egg",
            "idna; python_version>\"3\" --config-settings=x=y",
            "idna; python_version>\"3\"--config-settings=x=y",
            "idna; python_version>'3' -r x",
            "idna --hash=sha256:00",
            "idna==1 --global-option=x",
            "idna==1;",
            "idna; python_version",
            "idna; python_version > 3",
            "idna; version > '3'",
            "idna; (python_version > '3'",
            "idna; python_version > '3' and",
            "idna; python_version > '3' os_name == 'x'",
            "idna; python_version > '3",
            "idna; 'x --index-url=y' == os_name",
            "idna; os_name == '\u{2028}--index-url=x'",
            "idna\u{2028}--index-url=x",
            "idna\t--index-url=x",
            "idna\r--index-url=x",
            "idna\u{a0}-r x",
            "idna (>=1",
            "idna >=1 <2",
            "idna>=1,",
            "idna>=1,,<2",
            "idna[a",
            "idna[a,]",
            "idna[-a]",
            "idna six",
            "idna,six",
            "idna==${HOME}",
            "-idna",
            "idn\u{e4}",
            "file.whl",
            "http://h/x",
            "C:\\x",
        ] {
            assert!(!taken(Language::Python, text), "{text}");
        }
        for text in [
            "",
            "-g",
            "--registry=http://evil",
            "git+ssh://x/y",
            "user/repo",
            "a@user/repo",
            "a@file:../x",
            "./x",
            "/x",
            "../x",
            "a@https://h/x.tgz",
            "a@npm:b",
            "@/x",
            "@a",
            "a@",
            "a b",
            "https://h/x.tgz",
            "a\0b",
            ".hidden",
            "github:u/r",
            "a@1 --ignore-scripts=false",
            "a@1\n-g",
            "a@1 -g",
        ] {
            assert!(!taken(Language::Node, text), "{text}");
        }
    }

    #[test]
    fn places_are_taken_with_the_permission_and_options_never() {
        for (language, text, fits) in [
            (Language::Python, "./pkg-1.0.tar.gz", true),
            (Language::Python, "x @ https://h/x.whl", true),
            (Language::Python, "x[e] @ https://h/x.whl#sha256=00 ; python_version > '3'", true),
            (Language::Python, "git+https://h/x@main#egg=x", true),
            (Language::Python, "--index-url=x", false),
            (Language::Python, "x @ https://h/x.whl --config-settings=x=y", false),
            (Language::Python, "x @ https://h/x.whl; python_version>'3' --global-option=x", false),
            (Language::Python, "./x.tar.gz --config-settings=x=y", false),
            (Language::Python, "./x.tar.gz ./y.tar.gz", false),
            (Language::Python, "https://${TOKEN}@h/x.whl", false),
            (Language::Python, "idna --pre", false),
            (Language::Node, "user/repo", true),
            (Language::Node, "a@file:../x --ignore-scripts=false", false),
            (Language::Node, "-g", false),
        ] {
            assert_eq!(check(language, &[text.to_owned()], true).is_ok(), fits, "{text}");
        }
    }
}
