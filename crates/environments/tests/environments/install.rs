//! Installs with the real pip, uv and npm, from packages that lie beside this file.

use std::{fs, sync::Arc};

use crate::support::Bench;
use skillz_environments::{EnvironmentError, Language};

#[tokio::test]
async fn pip_and_uv_make_the_same_environment() {
    let bench = Bench::new();
    for with_uv in [false, true] {
        let uv = if with_uv { Some(bench.uv().await) } else { None };
        let environment = bench.ensure(Language::Python, uv.as_ref(), &["fixture-two"], None).await.unwrap();
        assert_eq!(bench.python(&environment, "import fixture_one, fixture_two; print(fixture_one.VERSION)").await, "1.0\n");
        assert!(
            environment.lock.contains("fixture-one==1.0") && environment.lock.contains("fixture-two==1.0"),
            "{}",
            environment.lock
        );
        assert_eq!(
            bench.run(&environment.directory.join("bin/fixture-one"), &[]).await,
            "one 1.0\n",
            "scripts start the environment's Python"
        );
        let again = bench.ensure(Language::Python, uv.as_ref(), &["fixture-two"], Some(&environment.lock)).await.unwrap();
        assert_eq!(again, environment, "the same lock is the same environment");
        for hash in bench.hashes() {
            bench.environments.remove(&hash).unwrap();
        }
    }
    assert_eq!(bench.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn locks_hold_versions_and_are_made_anew_for_other_dependencies() {
    let bench = Bench::new();
    let old = bench.ensure(Language::Python, None, &["fixture-one<2"], None).await.unwrap();
    assert!(old.lock.contains("fixture-one==1.0"));
    bench.environments.remove(&old.hash).unwrap();
    assert!(!bench.environments.is_whole(&old));
    let same = bench.ensure(Language::Python, None, &["fixture-one<2"], Some(&old.lock)).await.unwrap();
    assert_eq!(same.hash, old.hash);
    let new = bench.ensure(Language::Python, None, &["fixture-one"], Some(&old.lock)).await.unwrap();
    assert!(new.lock.contains("fixture-one==2.0"), "{}", new.lock);
    let unused = bench.environments.unused(std::slice::from_ref(&new.lock)).unwrap();
    assert_eq!(unused.iter().map(|unused| unused.hash.as_str()).collect::<Vec<_>>(), [old.hash.as_str()]);
    assert!(unused[0].size_bytes > 0);
}

#[tokio::test]
async fn ten_at_once_build_once_and_damage_is_repaired() {
    let bench = Arc::new(Bench::new());
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let bench = Arc::clone(&bench);
        calls.spawn(async move { bench.ensure(Language::Python, None, &["fixture-one"], None).await.unwrap() });
    }
    let environments = calls.join_all().await;
    assert!(environments.windows(2).all(|pair| pair[0].hash == pair[1].hash));
    assert_eq!(bench.hashes().len(), 1);
    let environment = &environments[0];
    fs::write(environment.packages.join("fixture_one.py"), "").unwrap();
    assert!(!bench.environments.is_intact(environment));
    let repaired = bench.ensure(Language::Python, None, &["fixture-one"], Some(&environment.lock)).await.unwrap();
    assert_eq!(repaired.hash, environment.hash);
    assert_eq!(bench.python(&repaired, "import fixture_one; print(fixture_one.VERSION)").await, "2.0\n");
    assert_eq!(bench.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn failures_name_cause_and_fix_and_leave_nothing() {
    let bench = Bench::new();
    let uv = bench.uv().await;
    for hash in bench.hashes() {
        bench.environments.remove(&hash).unwrap();
    }
    for (uv, dependencies, part) in [
        (None, ["no-such-fixture==9", "fixture-one"], "no such package or version"),
        (Some(&uv), ["no-such-fixture==9", "fixture-one"], "There is no such package"),
        (None, ["fixture-one==9", "fixture-two"], "no such package or version"),
        (Some(&uv), ["fixture-one==9", "fixture-two"], "There is no such version"),
        (None, ["fixture-one==2.0", "fixture-two"], "contradict"),
        (Some(&uv), ["fixture-one==2.0", "fixture-two"], "contradict"),
        (None, ["fixture-source", "fixture-one"], "no such package or version, or it is there as source only"),
        (Some(&uv), ["fixture-source", "fixture-one"], "source only"),
    ] {
        let error = bench.ensure(Language::Python, uv, &dependencies, None).await.expect_err("cannot be installed");
        assert!(error.to_string().contains(part), "{dependencies:?} {error}\n{}", error.output());
        assert!(error.fix().is_some() && !error.output().is_empty(), "{error:?}");
        assert!(bench.hashes().is_empty() && bench.leftovers().is_empty(), "{dependencies:?} left something behind");
    }
    for uv in [None, Some(&uv)] {
        let error = bench.ensure_with_scripts(Language::Python, uv, &["fixture-source"]).await.expect_err("has no compiler");
        assert!(error.to_string().contains("no compiler"), "{error}\n{}", error.output());
        assert!(bench.leftovers().is_empty());
    }
}

#[tokio::test]
async fn what_looks_like_an_option_or_a_place_is_refused() {
    let bench = Bench::new();
    for (language, dependency) in [
        (Language::Python, "--index-url=http://127.0.0.1:1/"),
        (Language::Python, "./here"),
        (Language::Python, "x @ file:///x"),
        (Language::Node, "-g"),
        (Language::Node, "user/repository"),
    ] {
        let error = bench.ensure(language, None, &[dependency], None).await.expect_err(dependency);
        assert!(matches!(error, EnvironmentError::Specifier { .. }), "{error:?}");
        assert!(error.to_string().contains(dependency), "{error}");
    }
}

#[tokio::test]
async fn npm_installs_without_running_scripts() {
    let bench = Bench::new();
    let npm = Bench::npm();
    let old = bench.ensure(Language::Node, Some(&npm), &["fixture-left@^1"], None).await.unwrap();
    assert!(old.packages.join("fixture-left/index.js").exists());
    assert!(!old.packages.join("fixture-left/ran-a-script").exists());
    bench.environments.remove(&old.hash).unwrap();
    let again = bench.ensure(Language::Node, Some(&npm), &["fixture-left@^1"], Some(&old.lock)).await.unwrap();
    assert_eq!(again.hash, old.hash);
    let newest = bench.ensure(Language::Node, Some(&npm), &["fixture-left"], None).await.unwrap();
    assert_ne!(newest.hash, old.hash);
    for (dependency, part) in [("no-such-fixture", "no such package"), ("fixture-left@9", "no such version")] {
        let error = bench.ensure(Language::Node, Some(&npm), &[dependency], None).await.expect_err(dependency);
        assert!(error.to_string().contains(part), "{error}\n{}", error.output());
    }
    let error = bench.ensure(Language::Node, None, &["fixture-left"], None).await.expect_err("needs npm");
    assert!(matches!(&error, EnvironmentError::NoInstaller { fix, .. } if fix.contains("npm")), "{error:?}");
    assert_eq!(bench.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn an_index_that_is_not_there_is_told() {
    let nowhere = "http://127.0.0.1:9/";
    let bench = Bench::with_variables(&[
        ("NPM_CONFIG_REGISTRY", nowhere),
        ("NPM_CONFIG_FETCH_RETRIES", "0"),
        ("PIP_INDEX_URL", nowhere),
        ("PIP_RETRIES", "1"),
    ]);
    let npm = Bench::npm();
    for (language, installer) in [(Language::Node, Some(&npm)), (Language::Python, None)] {
        let error = bench.ensure(language, installer, &["not-beside-us"], None).await.expect_err("cannot be reached");
        let told = format!("{error} {}", error.output());
        assert!(told.contains("cannot be reached") || told.contains("Connection refused"), "{told}");
    }
}

#[tokio::test]
async fn a_python_without_pip_and_venv_is_told_what_to_install() {
    let bench = Bench::new();
    let python = bench.bare_python();
    let error = bench.ensure_by(&python, &["fixture-one"]).await.expect_err("has neither");
    let EnvironmentError::NoInstaller { fix, .. } = &error else { panic!("{error:?}") };
    assert!(fix.contains("apt install python3-venv") && fix.contains("uv"), "{fix}");
    assert!(bench.leftovers().is_empty());
}
