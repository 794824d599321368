//! Reads what a user gave as a source: which way it is fetched, and what of it may be shown.

use std::path::{Component, Path, PathBuf};

use reqwest::Url;
use skillz_tool::{FetchRequest, ToolError};

use crate::error::refused;

/// Longest source taken, in bytes.
const LENGTH: usize = 4_096;
/// Ends of archives' names.
const ARCHIVES: [&str; 4] = [".tar.gz", ".tgz", ".tar", ".zip"];

/// A source, and the way it is fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A repository; without a reference its default branch.
    Git { url: String, reference: Option<String> },
    /// A gist, at a revision where one is given.
    Gist { id: String, revision: Option<String> },
    /// An archive or a `SKILL.md` on a web server.
    Download(Url),
    /// Something on this machine, as it was written.
    Local(String),
    /// Something on this machine, by a `file://` URL: a repository if it is one.
    FileUrl { path: String, reference: Option<String> },
}

/// A source with the folder in it that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) source: Source,
    /// Plain, relative, without `.` or `..`.
    pub(crate) path: Option<PathBuf>,
}

/// Reads a request.
pub(crate) fn parse(request: &FetchRequest) -> Result<Parsed, ToolError> {
    let given = request.source.trim();
    if given.is_empty() || given.len() > LENGTH {
        return Err(refused(format!("`source` has {} bytes; it must have 1 to {LENGTH}", given.len())));
    }
    if given.chars().any(char::is_control) {
        return Err(refused("`source` holds control characters"));
    }
    if given.starts_with('-') {
        return Err(refused(format!(
            "The source `{given}` looks like an option of a program; a folder of that name is `./{given}`"
        )));
    }
    let reference = request.reference.as_deref().map(str::trim).filter(|reference| !reference.is_empty());
    let mut path = request.path.as_deref().map(plain_path).transpose()?.flatten();
    let (source, path_in_url) = read(given, reference)?;
    path = path.or(path_in_url);
    // A file that makes a folder a tool or a skill stands for the folder.
    if let Some(inner) = &path
        && matches!(inner.file_name().and_then(|name| name.to_str()), Some("SKILL.md" | "manifest.json"))
    {
        path = inner.parent().map(Path::to_owned).filter(|folder| !folder.as_os_str().is_empty());
    }
    if let Source::Git { url, .. } = &source
        && request.allowed_folders.is_some()
        && !["http://", "https://", "git://"].iter().any(|scheme| url.starts_with(scheme))
    {
        return Err(refused(format!(
            "`{}` is fetched with the keys of this machine's user, so clients on other machines cannot import it",
            shown_url(url)
        )));
    }
    if let Source::Git { reference: Some(reference), .. } | Source::FileUrl { reference: Some(reference), .. } = &source {
        check_reference(reference)?;
    }
    Ok(Parsed { source, path })
}

fn read(given: &str, reference: Option<&str>) -> Result<(Source, Option<PathBuf>), ToolError> {
    if let Some(id) = given.strip_prefix("gist:") {
        let (id, fragment) = split_fragment(id);
        return Ok((gist(id.trim_start_matches('/'), reference.or(fragment))?, None));
    }
    let given = given.strip_prefix("git+").unwrap_or(given);
    if let Some((helper, _)) = given.split_once("::").filter(|(helper, _)| is_scheme(helper)) {
        return Err(refused(format!("`{helper}::` names a program that git would run; such sources are never fetched")));
    }
    let Some((scheme, rest)) = given.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return Ok((local_or_ssh(given, reference)?, None));
    };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => read_web(given, reference),
        "ssh" | "git" => {
            let (url, fragment) = split_fragment(given);
            check_host(rest)?;
            Ok((git(url, reference.or(fragment)), None))
        }
        "file" => {
            let (url, fragment) = split_fragment(given);
            let local = Url::parse(url).ok().and_then(|url| url.to_file_path().ok());
            let Some(local) = local.as_deref().and_then(Path::to_str) else {
                return Err(refused(format!("`{given}` is no `file:///absolute/path`")));
            };
            // A repository's address is one, whether or not somebody works in it; the fetch looks whether it is a repository.
            Ok((Source::FileUrl { path: local.to_owned(), reference: reference.or(fragment).map(str::to_owned) }, None))
        }
        other => Err(refused(format!("Sources of the kind `{other}://` are not fetched"))),
    }
}

/// A web address: a gist, an archive, a `SKILL.md`, a folder of a repository as a browser shows it, or a repository.
fn read_web(given: &str, reference: Option<&str>) -> Result<(Source, Option<PathBuf>), ToolError> {
    let mut url = Url::parse(given).map_err(|error| refused(format!("`{}` is no URL: {error}", shown_url(given))))?;
    let fragment = url.fragment().filter(|fragment| !fragment.is_empty()).map(str::to_owned);
    url.set_fragment(None);
    let reference = reference.map(str::to_owned).or(fragment);
    let segments: Vec<String> =
        url.path_segments().into_iter().flatten().filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    if host == "gist.github.com" {
        let rest: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (id, revision) = match rest.as_slice() {
            [id] | [_, id] => (id, None),
            [_, id, revision] => (id, Some(*revision)),
            _ => return Err(refused(format!("`{}` is no gist's address", shown_url(given)))),
        };
        return Ok((gist(id.trim_end_matches(".git"), reference.as_deref().or(revision))?, None));
    }
    if let ("github.com" | "gitlab.com", [owner, repository, rest @ ..]) = (host.as_str(), segments.as_slice()) {
        let rest = if rest.first().is_some_and(|first| first == "-") { rest.get(1..).unwrap_or_default() } else { rest };
        if let [kind, shown, inner @ ..] = rest
            && (kind == "tree" || kind == "blob")
        {
            let mut repository_url = url.clone();
            repository_url.set_path(&format!("{owner}/{repository}"));
            let inner = if kind == "blob" { inner.split_last().map_or(inner, |(_, folders)| folders) } else { inner };
            let path = plain_path(&inner.join("/"))?;
            return Ok((git(repository_url.as_str(), Some(reference.as_deref().unwrap_or(shown))), path));
        }
    }
    let last = segments.last().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    if is_archive(&last) || last.ends_with(".md") || host == "codeload.github.com" {
        return Ok((Source::Download(url), None));
    }
    Ok((git(url.as_str(), reference.as_deref()), None))
}

/// `user@host:path`, as ssh and git write it, or something on this machine.
fn local_or_ssh(given: &str, reference: Option<&str>) -> Result<Source, ToolError> {
    let (place, fragment) = split_fragment(given);
    if let Some((login, path)) = place.split_once(':')
        && let Some((user, host)) = login.split_once('@')
        && !path.is_empty()
        && !login.contains('/')
    {
        let plain = |part: &str| {
            part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')) && !part.starts_with('-')
        };
        if !plain(user) || !plain(host) || user.is_empty() || host.is_empty() || path.starts_with('-') {
            return Err(refused(format!("`{given}` is no address that ssh could take")));
        }
        return Ok(git(place, reference.or(fragment)));
    }
    // A `#` may be part of a folder's name.
    if fragment.is_some() && Path::new(given).exists() {
        return Ok(local_or_git(given, reference));
    }
    Ok(local_or_git(place, reference.or(fragment)))
}

/// A folder is taken as a repository only where a reference says so, or where it can be nothing else; the fetch looks.
fn local_or_git(place: &str, reference: Option<&str>) -> Source {
    match reference {
        Some(reference) => Source::Git { url: place.to_owned(), reference: Some(reference.to_owned()) },
        None => Source::Local(place.to_owned()),
    }
}

fn git(url: &str, reference: Option<&str>) -> Source {
    Source::Git { url: url.to_owned(), reference: reference.map(str::to_owned) }
}

fn gist(id: &str, revision: Option<&str>) -> Result<Source, ToolError> {
    // `user/id` as in the address.
    let (user, id) = id.split_once('/').unwrap_or(("user", id));
    if user.is_empty() || !user.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(refused(format!("`{user}` is nobody's name on GitHub, so `{user}/{id}` is no gist's")));
    }
    let is_plain = |text: &str| !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_plain(id) {
        return Err(refused(format!("`{id}` is no gist's id, which is letters and digits")));
    }
    if let Some(revision) = revision.filter(|revision| !is_plain(revision)) {
        return Err(refused(format!("`{revision}` is no revision of a gist, which is a commit's hash")));
    }
    Ok(Source::Gist { id: id.to_owned(), revision: revision.map(str::to_owned) })
}

/// Git's rule for names of references, and no more: nothing that is an option, a range or a pattern.
fn check_reference(reference: &str) -> Result<(), ToolError> {
    let forbidden = |character: char| character.is_whitespace() || character.is_control() || "~^:?*[\\".contains(character);
    let wrong = reference.starts_with(['-', '+', '/', '.'])
        || reference.ends_with(['/', '.'])
        || reference.contains("..")
        || reference.contains("@{")
        || reference.contains("//")
        || reference.chars().any(forbidden)
        || reference.len() > 250;
    if wrong {
        let shown: String = reference.chars().take(80).collect();
        return Err(refused(format!("The `ref` `{shown}` cannot be the name of a branch or tag, or a commit's hash")));
    }
    Ok(())
}

/// The host of an ssh or git URL: a program that connects must not take it for an option.
fn check_host(rest: &str) -> Result<(), ToolError> {
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with('-') || authority.starts_with('-') || host.contains("%2D") || host.contains("%2d") {
        return Err(refused("The URL's host looks like an option of a program"));
    }
    Ok(())
}

/// A folder within a source: relative, and staying within.
fn plain_path(path: &str) -> Result<Option<PathBuf>, ToolError> {
    let mut plain = PathBuf::new();
    for part in Path::new(path.trim()).components() {
        match part {
            Component::Normal(name) if !path.contains('\0') => plain.push(name),
            Component::CurDir => {}
            _ => {
                let shown: String = path.chars().take(80).collect();
                return Err(refused(format!(
                    "The `path` `{shown}` does not stay in the source; give a folder in it, such as `tools/mine`"
                )));
            }
        }
    }
    Ok((!plain.as_os_str().is_empty()).then_some(plain))
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn split_fragment(text: &str) -> (&str, Option<&str>) {
    text.split_once('#')
        .map_or((text, None), |(before, fragment)| (before, Some(fragment).filter(|fragment| !fragment.is_empty())))
}

/// Whether a file's name is an archive's.
pub(crate) fn is_archive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ARCHIVES.iter().any(|end| name.ends_with(end))
}

/// An address without user, password and query, any of which may be a secret.
pub(crate) fn shown_url(url: &str) -> String {
    let (before, _) = url.split_once('?').unwrap_or((url, ""));
    let (before, _) = before.split_once('#').unwrap_or((before, ""));
    match before.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => before.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(source: &str, reference: Option<&str>, path: Option<&str>) -> Result<Parsed, String> {
        let request = FetchRequest {
            source: source.to_owned(),
            reference: reference.map(str::to_owned),
            path: path.map(str::to_owned),
            allowed_folders: None,
        };
        parse(&request).map_err(|error| error.message)
    }

    fn git(url: &str, reference: Option<&str>) -> Source {
        super::git(url, reference)
    }

    #[test]
    fn each_form_of_source_is_told_from_the_others() {
        let gist = |id: &str, revision: Option<&str>| Source::Gist { id: id.to_owned(), revision: revision.map(str::to_owned) };
        let download = |url: &str| Source::Download(Url::parse(url).unwrap());
        let local = |path: &str| Source::Local(path.to_owned());
        for (given, expected) in [
            ("https://github.com/a/b", git("https://github.com/a/b", None)),
            ("https://github.com/a/b.git#v1", git("https://github.com/a/b.git", Some("v1"))),
            ("git+https://h/a.git#feature/x", git("https://h/a.git", Some("feature/x"))),
            ("http://127.0.0.1:1/r.git", git("http://127.0.0.1:1/r.git", None)),
            ("ssh://git@h:22/a.git#v1", git("ssh://git@h:22/a.git", Some("v1"))),
            ("git://h/a.git", git("git://h/a.git", None)),
            ("git@github.com:a/b.git#v1", git("git@github.com:a/b.git", Some("v1"))),
            ("file:///tmp/repo#main", Source::FileUrl { path: "/tmp/repo".to_owned(), reference: Some("main".to_owned()) }),
            ("file:///tmp/repo", Source::FileUrl { path: "/tmp/repo".to_owned(), reference: None }),
            ("gist:0123abcd", gist("0123abcd", None)),
            ("gist:user/0123abcd", gist("0123abcd", None)),
            ("https://gist.github.com/me/0123abcd", gist("0123abcd", None)),
            ("https://gist.github.com/me/0123abcd/ffff", gist("0123abcd", Some("ffff"))),
            ("https://h/x.tar.gz", download("https://h/x.tar.gz")),
            ("https://h/x.ZIP?token=1", download("https://h/x.ZIP?token=1")),
            ("https://h/s/SKILL.md", download("https://h/s/SKILL.md")),
            ("./folder", local("./folder")),
            ("~/folder", local("~/folder")),
            ("folder.tar.gz", local("folder.tar.gz")),
        ] {
            assert_eq!(parsed(given, None, None).map(|parsed| parsed.source), Ok(expected), "{given}");
        }
    }

    #[test]
    fn a_folder_shown_by_a_browser_is_a_path_in_a_repository() {
        for (given, reference, path) in [
            ("https://github.com/a/b/tree/main/tools/x", "main", Some("tools/x")),
            ("https://github.com/a/b/blob/v1/skills/pdf/SKILL.md", "v1", Some("skills/pdf")),
            ("https://gitlab.com/a/b/-/tree/main/x", "main", Some("x")),
            ("https://github.com/a/b/tree/main", "main", None),
        ] {
            let parsed = parsed(given, None, None).unwrap();
            let Source::Git { url, reference: found } = parsed.source else { panic!("{given}") };
            assert!(url.ends_with("/a/b"), "{url}");
            assert_eq!((found.as_deref(), parsed.path.as_deref()), (Some(reference), path.map(Path::new)), "{given}");
        }
    }

    #[test]
    fn what_could_run_or_lead_astray_is_refused() {
        for given in [
            "",
            "--upload-pack=touch /tmp/x",
            "-x",
            "ext::sh -c 'touch /tmp/x'",
            "git+ext::sh -c x",
            "fd::17",
            "ftp://h/x.tar.gz",
            "data://x",
            "javascript://x",
            "ssh://-oProxyCommand=x/a",
            "ssh://user@-oProxyCommand=x/a",
            "git://-x/a",
            "git@-oProxyCommand=x:a",
            "-o@h:a",
            "a\nb",
            "gist:../y",
            "gist:-x",
            "gist:a%2f",
        ] {
            assert!(parsed(given, None, None).is_err(), "{given}");
        }
        for reference in ["--foo", "-x", "a..b", "a:b", "+a", "a b", "a~1", "a^{commit}", "@{u}", "a*", "/a", ".a", "a\\b"] {
            assert!(parsed("https://h/a.git", Some(reference), None).is_err(), "{reference}");
            assert!(parsed(&format!("ssh://h/a.git#{reference}"), None, None).is_err(), "{reference}");
        }
        for path in ["../x", "/etc", "a/../../b", "a\0"] {
            assert!(parsed("https://h/a.git", None, Some(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn references_given_apart_win_and_paths_are_made_plain() {
        let both = parsed("https://h/a.git#one", Some("two"), Some("./tools//x/")).unwrap();
        assert_eq!(both, Parsed { source: git("https://h/a.git", Some("two")), path: Some("tools/x".into()) });
        for (path, folder) in [("tools/x/manifest.json", Some("tools/x")), ("x/SKILL.md", Some("x")), ("SKILL.md", None)] {
            let parsed = parsed("https://h/a.git", None, Some(path)).unwrap();
            assert_eq!(parsed.path.as_deref(), folder.map(Path::new), "{path}");
        }
        assert_eq!(
            parsed("https://h/a.git", Some(" "), Some(".")).unwrap(),
            Parsed { source: git("https://h/a.git", None), path: None }
        );
    }

    #[test]
    fn nothing_secret_of_an_address_is_shown() {
        for (url, shown) in [
            ("https://user:p4ss@h/a.git#x", "https://h/a.git"),
            ("https://h/x.zip?token=s3cret", "https://h/x.zip"),
            ("https://a@b@h", "https://h"),
            ("git@github.com:a/b.git", "git@github.com:a/b.git"),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }
}
