use std::net::TcpListener;

use skillz_sandbox::SandboxKind;

use super::{contents::package_of, *};
use crate::{ToolchainSettings, test_host::SilentHost};

#[expect(clippy::disallowed_methods, reason = "a test finds the toolchain where its own environment says")]
fn store(directory: &Path) -> CrateStore {
    let launcher = Launcher::new(std::env::current_exe().unwrap(), SandboxKind::Auto);
    let settings = ToolchainSettings {
        search_path: std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect(),
        user_home: std::env::home_dir(),
        cargo_home: std::env::var_os("CARGO_HOME").map(PathBuf::from),
        rustup_home: std::env::var_os("RUSTUP_HOME").map(PathBuf::from),
        download_environment: vec![("A_SECRET".into(), "for downloads only".into())],
    };
    let toolchains = Arc::new(Toolchains::new(settings, launcher.clone(), directory.join("work")));
    CrateStore::new(directory.to_owned(), launcher, toolchains, Duration::from_mins(2), 2 << 30)
}

/// A build script that tries what it should not be able to do, and writes down how it went.
fn prying_script(outside: &Path, port: u16) -> String {
    let home = std::env::home_dir().unwrap_or_default();
    format!(
        r#"
use std::{{fs, net::TcpStream, time::Duration}};

fn main() {{
    let mut report = String::new();
    let mut note = |what: &str, happened: bool| report.push_str(&format!("{{what}}={{happened}}\n"));
    note("read_shadow", fs::read("/etc/shadow").is_ok());
    note("read_outside", fs::read({outside:?}).is_ok());
    note("write_outside", fs::write({outside:?}, "planted").is_ok());
    note("see_home", fs::read_dir({home:?}).is_ok_and(|entries| {{
        entries.flatten().any(|entry| {{
            let name = entry.file_name();
            name != ".cargo" && name != ".rustup"
        }})
    }}));
    let address = "127.0.0.1:{port}".parse().unwrap();
    note("connect_here", TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok());
    let address = "1.1.1.1:443".parse().unwrap();
    note("connect_away", TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok());
    note("see_secret", std::env::vars().any(|(name, _)| name == "A_SECRET" || name == "SKILLZ_TEST_SECRET"));
    let strangers = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    note("see_processes", strangers.filter(|line| line.windows(11).any(|part| part == b"skillz_runt")).count() > 0);
    note("write_registry", fs::write(std::env::var("CARGO_HOME").unwrap() + "/registry/planted", "x").is_ok());
    note("write_toolchain", fs::write(std::env::var("RUSTC").unwrap() + "-planted", "x").is_ok());
    note("write_own", true);
    fs::write(std::env::var("OUT_DIR").unwrap() + "/report.txt", report).unwrap();
}}
"#
    )
}

#[tokio::test]
async fn a_build_script_reaches_nothing_but_its_own_folder() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let outside = directory.path().join("outside.txt");
    fs::write(&outside, "untouched").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();

    let set = DependencySet { listed: Vec::new(), guest: false };
    let progress = BuildProgress::new(&SilentHost);
    let toolchain = store.toolchains.find(&progress).await.unwrap();
    let staging = store.staging().unwrap();
    let project = staging.path().join("project");
    let guest = guest_crate::write(directory.path()).unwrap();
    set.write(&project, &guest, None).unwrap();
    fs::write(project.join("build.rs"), prying_script(&outside, port)).unwrap();
    store.prepare_cargo_home(staging.path()).unwrap();
    let making = Making { toolchain: &toolchain, set: &set, guest: &guest, identity: "x", progress: &progress };
    let lock = store.resolve(&making, &project, false).await.unwrap();
    store.build(&making, staging.path(), &lock).await.unwrap();

    let report = find_report(&staging.path().join("target")).expect("the script has run");
    let report = fs::read_to_string(report).unwrap();
    let happened: Vec<&str> = report.lines().filter_map(|line| line.strip_suffix("=true")).collect();
    assert_eq!(happened, ["write_own"], "{report}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "untouched");
}

fn find_report(directory: &Path) -> Option<PathBuf> {
    fs::read_dir(directory).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() { find_report(&path) } else { (path.file_name()? == "report.txt").then_some(path) }
    })
}

#[tokio::test]
async fn a_crate_that_does_not_compile_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let set = DependencySet { listed: Vec::new(), guest: false };
    let progress = BuildProgress::new(&SilentHost);
    let toolchain = store.toolchains.find(&progress).await.unwrap();
    let staging = store.staging().unwrap();
    let project = staging.path().join("project");
    let guest = guest_crate::write(directory.path()).unwrap();
    set.write(&project, &guest, None).unwrap();
    store.prepare_cargo_home(staging.path()).unwrap();
    let making = Making { toolchain: &toolchain, set: &set, guest: &guest, identity: "x", progress: &progress };
    let lock = store.resolve(&making, &project, false).await.unwrap();
    for (script, part) in [
        ("fn main() { panic!(\"no C compiler for this target\") }", "no C compiler for this target"),
        ("fn main() { let x: u8 = \"a\"; }", "mismatched types"),
    ] {
        fs::write(project.join("build.rs"), script).unwrap();
        let error = store.build(&making, staging.path(), &lock).await.unwrap_err();
        let text = error.text();
        assert!(text.starts_with("A dependency does not compile") && text.contains(part), "{text}");
        assert!(!text.contains(&*directory.path().to_string_lossy()), "{text}");
    }
}

#[test]
fn package_ids_are_read() {
    for (id, expected) in [
        ("registry+https://github.com/rust-lang/crates.io-index#serde@1.0.2", Some(("serde", "1.0.2"))),
        ("path+file:///cache/skillz#skillz-guest@0.1.0", Some(("skillz-guest", "0.1.0"))),
        ("path+file:///projects/project#0.0.0", Some(("project", "0.0.0"))),
        ("nothing", None),
    ] {
        assert_eq!(package_of(id), expected, "{id}");
    }
}

#[test]
fn the_sweep_keeps_the_newest() {
    let directory = tempfile::tempdir().unwrap();
    for (name, age) in [("a", 30), ("b", 10), ("c", 20)] {
        let folder = directory.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::File::open(&folder).unwrap().set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    sweep(directory.path(), 2);
    let left = |name: &str| directory.path().join(name).exists();
    assert!(!left("a") && left("b") && left("c"));
}
