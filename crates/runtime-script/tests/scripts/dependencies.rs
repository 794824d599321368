//! Scripts with dependencies: installed at registration, locked, found by workers and processes, made again when lost.

use std::{fs, path::PathBuf};

use crate::support::{Bench, Script, script, value, with_protocol};
use skillz_json::json;
use skillz_sandbox::SandboxKind;
use skillz_tool::{ErrorKind, Protocol};

/// The packages that the tests of `skillz-environments` use.
fn packages() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../environments/tests/fixtures").canonicalize().unwrap()
}

fn with<'a>(mut script: Script<'a>, dependencies: &[&str]) -> Script<'a> {
    script.manifest.dependencies = dependencies.iter().map(|dependency| (*dependency).to_owned()).collect();
    script
}

const FUNCTION: &str = "import fixture_one\ndef run(): return fixture_one.VERSION";
const PROCESS: &str = "import fixture_one\nprint(fixture_one.VERSION)";

#[tokio::test]
async fn functions_and_processes_see_their_packages_and_share_them() {
    for sandbox in [SandboxKind::None, SandboxKind::Auto] {
        let bench = Bench::with_packages(&packages(), sandbox);
        let function = bench.register(with(script("packs", "python3", FUNCTION), &["fixture-one<2"])).await;
        let process = bench.register(with(script("packs_too", "python3", PROCESS), &["fixture-one<2"])).await;
        assert_eq!(value(bench.run(&function, json!({})).await), json!("1.0"));
        assert_eq!(value(bench.run(&process, json!({})).await), json!("1.0\n"));
        let locks: Vec<String> =
            [&function, &process].map(|tool| fs::read_to_string(tool.directory.join("lock")).unwrap()).to_vec();
        assert!(locks[0] == locks[1] && locks[0].contains("fixture-one==1.0"), "{}", locks[0]);
        let environments = fs::read_dir(bench.environments.directory()).unwrap().flatten();
        assert_eq!(environments.filter(|entry| entry.file_name().len() == 32).count(), 1);
        assert!(bench.environments.unused(&locks).unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_vanished_or_was_damaged_is_made_again_at_the_next_call() {
    let bench = Bench::with_packages(&packages(), SandboxKind::None);
    let function = bench.register(with(script("lost", "python3", FUNCTION), &["fixture-one"])).await;
    let process = bench.register(with(script("lost_too", "python3", PROCESS), &["fixture-one"])).await;
    assert_eq!(value(bench.run(&function, json!({})).await), json!("2.0"));
    fs::remove_dir_all(bench.environments.directory()).unwrap();
    assert_eq!(value(bench.run(&process, json!({})).await), json!("2.0\n"));
    assert_eq!(value(bench.run(&function, json!({})).await), json!("2.0"));
    // Damage that leaves the folders as they were shows only when something cannot be imported.
    let environment = fs::read_dir(bench.environments.directory()).unwrap().flatten().map(|entry| entry.path());
    let environment = environment.into_iter().find(|path| path.join("pyvenv.cfg").exists()).unwrap();
    let module = environment.join("lib/python3.11/site-packages/fixture_one.py");
    let module = if module.exists() { module } else { find(&environment, "fixture_one.py").unwrap() };
    fs::write(&module, "raise ImportError('cut off')").unwrap();
    bench.runtime_retire(&function);
    assert_eq!(value(bench.run(&function, json!({})).await), json!("2.0"));
    assert_eq!(value(bench.run(&process, json!({})).await), json!("2.0\n"));
}

#[tokio::test]
async fn a_deleted_tool_takes_along_what_no_other_needs_and_no_call_uses() {
    let bench = Bench::with_packages(&packages(), SandboxKind::None);
    let environments = || {
        let entries = fs::read_dir(bench.environments.directory()).unwrap().flatten();
        entries.filter(|entry| entry.file_name().len() == 32).count()
    };
    let first = bench.register(with(script("first", "python3", FUNCTION), &["fixture-one"])).await;
    let second = bench.register(with(script("second", "python3", PROCESS), &["fixture-one"])).await;
    bench.runtime_discard(&first, &[second.clone()]).await;
    assert_eq!(environments(), 1, "the other tool needs it");

    // Opening a pipe to write waits for its reader, so that the call is under way then, until the pipe is closed.
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let code = format!("import fixture_one\nopen({:?}).read()\nprint(fixture_one.VERSION)", pipe.display().to_string());
    let waiting =
        bench.register(with(with_protocol(script("waiting", "python3", &code), Protocol::JsonRpc), &["fixture-one"])).await;
    let (outcome, ()) = tokio::join!(bench.run(&waiting, json!({})), async {
        let writer = tokio::task::spawn_blocking(move || fs::OpenOptions::new().write(true).open(pipe)).await.unwrap();
        bench.runtime_discard(&waiting, &[]).await;
        assert_eq!(environments(), 1, "a call uses it");
        drop(writer);
    });
    assert_eq!(value(outcome), json!("2.0\n"));
    bench.runtime_discard(&second, &[]).await;
    assert_eq!(environments(), 0);
    assert_eq!(value(bench.run(&second, json!({})).await), json!("2.0\n"), "it is made again");
}

fn find(folder: &std::path::Path, name: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        let found =
            if path.is_dir() && !path.is_symlink() { find(&path, name) } else { (entry.file_name() == name).then_some(path) };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// What an installer would fail at: with an index that is not there, nothing can be resolved or fetched.
#[tokio::test]
async fn equal_dependencies_keep_lock_and_environment_and_run_no_installer() {
    let packages = packages();
    let index = tempfile::tempdir().unwrap();
    let wheels: Vec<_> = fs::read_dir(packages).unwrap().flatten().collect();
    for wheel in wheels.iter().filter(|file| file.path().extension().is_some_and(|extension| extension == "whl")) {
        fs::copy(wheel.path(), index.path().join(wheel.file_name())).unwrap();
    }
    let bench = Bench::with_packages(index.path(), SandboxKind::None);
    let block = |line: &str| format!("# /// script\n# dependencies = [{line}]\n# ///\n{FUNCTION}");
    let (one, inline) = (with(script("kept", "python3", FUNCTION), &["fixture-one<2", "fixture-two"]), block("\"fixture-one\""));
    let first = bench.register(one).await;
    bench.register(script("inline", "python3", &inline)).await;
    let lock = fs::read_to_string(first.directory.join("lock")).unwrap();
    drop(index);
    for (code, dependencies, version) in [
        (format!("{FUNCTION} + '!'"), vec!["fixture-one<2", "fixture-two"], "1.0!"),
        (format!("{FUNCTION} + '?'"), vec!["fixture-two", "fixture-one<2"], "1.0?"),
        (block("\"fixture-one<2\""), vec!["fixture-two"], "1.0"),
        (block("\"fixture-two\", \"fixture-one<2\""), vec![], "1.0"),
        (block("\"fixture-one<2\""), vec!["fixture-one<2", "fixture-two"], "1.0"),
    ] {
        let again = bench.register(with(script("kept", "python3", &code), &dependencies)).await;
        assert_eq!(fs::read_to_string(again.directory.join("lock")).unwrap(), lock, "{code}");
        assert_eq!(value(bench.run(&again, json!({})).await), json!(version), "{code}");
    }
    let again = bench.register(script("inline", "python3", &format!("{inline} + '!'"))).await;
    assert_eq!(value(bench.run(&again, json!({})).await), json!("2.0!"));
    let other = bench.prepare(with(script("kept", "python3", FUNCTION), &["fixture-one"])).await;
    assert_eq!(other.expect_err("has to be installed, and cannot").kind, ErrorKind::Failed);
    let without = bench.register(script("kept", "python3", "def run(): return 1")).await;
    assert!(!without.directory.join("lock").exists());
}

#[tokio::test]
async fn inline_metadata_counts_as_dependencies() {
    let bench = Bench::with_packages(&packages(), SandboxKind::None);
    let block = |lines: &str, code: &str| format!("# /// script\n{lines}# ///\n{code}");
    for (name, lines, code, expected) in [
        ("function", "# dependencies = [\"fixture-one==1.0\"]\n", FUNCTION, "1.0"),
        ("process", "# requires-python = \">=3.8\"\n# dependencies = [\n#   \"fixture-one\",\n# ]\n", PROCESS, "2.0\n"),
        ("marked", "# dependencies = [\"fixture-one<2\", \"nothing; python_version < '3'\"]\n", FUNCTION, "1.0"),
        ("nothing", "# dependencies = []\n", "def run(): return 'none'", "none"),
    ] {
        let tool = bench.register(script(name, "python3", &block(lines, code))).await;
        assert!(tool.manifest.dependencies.is_empty(), "the source goes on to say it");
        assert_eq!(value(bench.run(&tool, json!({})).await), json!(expected), "{name}");
    }
    for (lines, part) in [
        ("# requires-python = \">=3.99\"\n", "is Python 3."),
        ("# dependencies = [\"fixture-one\"\n", "on line "),
        ("# ///\n\n# /// script\n", "on line 4"),
        ("# dependencies = [\"x @ https://h/x.whl\"]\n", "install_scripts"),
        ("# dependencies = [\"fixture-one --pre\"]\n", "option"),
    ] {
        let error = bench.prepare(script("refused", "python3", &block(lines, FUNCTION))).await.expect_err(lines);
        assert_eq!(error.kind, ErrorKind::InvalidInput, "{error}");
        assert!(error.text().contains(part), "{error}");
    }
    let bench = Bench::new();
    let other = bench.register(script("javascript", "node", "// x\nexport function run() { return `\n# /// script\n` }")).await;
    assert_eq!(value(bench.run(&other, json!({})).await), json!("\n# /// script\n"));
}

#[tokio::test]
async fn installs_that_fail_refuse_the_tool_and_say_why() {
    let bench = Bench::with_packages(&packages(), SandboxKind::Auto);
    for (interpreter, code, dependency, kind, part) in [
        ("python3", FUNCTION, "no-such-fixture==9", ErrorKind::Failed, "no such package"),
        ("python3", FUNCTION, "--index-url=x", ErrorKind::InvalidInput, "option"),
        ("bash", "echo", "fixture-one", ErrorKind::InvalidInput, "Python (pip) and JavaScript (npm) only"),
    ] {
        let error = bench.prepare(with(script("refused", interpreter, code), &[dependency])).await.expect_err(dependency);
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.text().contains(part), "{error}");
    }
    let left =
        fs::read_dir(bench.environments.directory()).unwrap().flatten().filter(|entry| entry.file_name() != ".locks").count();
    assert_eq!(left, 0, "nothing half-made is left");
}
