//! Compilers work on code that nobody has read yet: what it may see of this machine, and how long it may take.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests may fail them"
)]

mod support;

use std::{fs, time::Duration};

use skillz_tool::ErrorKind;
use support::{Bench, eventually};

skillz_process::helper_entry!();

/// Evaluates a constant until it is stopped.
const ENDLESS: &str = "#![allow(long_running_const_eval)]
const N: u64 = { let mut n = 0u64; while n < u64::MAX { n += 1; } n };
fn main() { println!(\"{N}\"); }";

#[tokio::test]
async fn files_and_variables_of_the_machine_are_not_there() {
    let bench = Bench::new();
    for (code, part) in [
        ("fn main() { print!(\"{}\", include_str!(\"/etc/shadow\")); }", "couldn't read `/etc/shadow`"),
        ("fn main() { print!(\"{}\", env!(\"HOME\")); }", "`HOME` not defined"),
        ("fn main() { print!(\"{}\", env!(\"CARGO_MANIFEST_DIR\")); }", "not defined"),
    ] {
        let error = bench.build("peek", code, &[]).await.expect_err(code);
        assert!(error.text().contains(part), "{error}");
    }
    let secret = tempfile::NamedTempFile::new().unwrap();
    fs::write(secret.path(), "a secret").unwrap();
    let code = format!("fn main() {{ print!(\"{{}}\", include_str!({:?})); }}", secret.path());
    let error = bench.build("peek", &code, &[]).await.unwrap_err();
    assert!(error.text().contains("couldn't read"), "{error}");
    if let Some(home) = std::env::home_dir() {
        let bashrc = home.join(".bashrc");
        let code = format!("fn main() {{ print!(\"{{}}\", include_str!({bashrc:?})); }}");
        assert!(bench.build("peek", &code, &[]).await.unwrap_err().text().contains("couldn't read"));
    }
}

#[tokio::test]
async fn passwords_of_the_machine_do_not_end_up_in_a_module() {
    let bench = Bench::new();
    let code = "fn main() { print!(\"{}\", include_str!(\"/etc/passwd\")); }";
    // The sandbox may show a made-up file in its place, but never the machine's own.
    if let Ok(tool) = bench.build("peek", code, &[]).await {
        let module = fs::read(tool.module_path()).unwrap();
        let passwd = fs::read("/etc/passwd").unwrap();
        assert!(!module.windows(passwd.len()).any(|window| window == passwd), "the machine's accounts are in the module");
    }
}

#[tokio::test]
async fn endless_compilers_are_stopped() {
    let bench = Bench::with(|settings| settings.build_timeout = Duration::from_secs(3));
    let error = bench.build("endless", ENDLESS, &[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut, "{error}");
    assert!(error.message.contains("`rustc` did not finish within 3 s"), "{error}");
}

#[tokio::test]
async fn compilers_that_eat_memory_are_stopped() {
    let bench = Bench::with(|settings| {
        settings.build_memory_bytes = 400 << 20;
        settings.build_timeout = Duration::from_mins(1);
    });
    let code = "#![recursion_limit = \"1024\"]
        macro_rules! bomb { ($($t:tt)*) => { bomb!($($t)* $($t)*); } }
        fn main() { bomb!(1 + 1); }";
    let error = bench.build("bomb", code, &[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitExceeded, "{error}");
    assert!(error.message.contains("more than 400 MB of memory"), "{error}");
}

/// Processes whose environment names a folder; the compilers' temporary folder is below the home.
fn processes_of(folder: &std::path::Path) -> usize {
    let needle = folder.to_string_lossy().into_owned();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let environments = entries.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
    environments.filter(|environment| String::from_utf8_lossy(environment).contains(&needle)).count()
}

#[tokio::test]
async fn dropping_a_build_ends_its_compiler() {
    let bench = Bench::new();
    let home = bench.home.path().canonicalize().unwrap();
    {
        let build = bench.build("endless", ENDLESS, &[]);
        let started = eventually("a running compiler", || processes_of(&home) > 0);
        tokio::select! {
            outcome = build => panic!("the build never ends, but {outcome:?}"),
            () = started => {}
        }
    }
    eventually("the end of the compiler", || processes_of(&home) == 0).await;
}
