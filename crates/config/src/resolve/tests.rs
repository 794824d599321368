use std::fs;

use super::*;
use crate::{Exposure, PolicyMode, Sandbox, Transport};

/// A data folder, a workspace, and the files in them.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir_all(folder.path().join("home")).expect("home");
        fs::create_dir_all(folder.path().join("work")).expect("work");
        Self { folder }
    }

    fn config(self, text: &str) -> Self {
        fs::write(self.folder.path().join("home/config.toml"), text).expect("config.toml");
        self
    }

    fn workspace(self, text: &str) -> Self {
        fs::write(self.folder.path().join("work/.skillz.toml"), text).expect(".skillz.toml");
        self
    }

    fn resolve(&self, variables: &[(&str, &str)], flags: &Flags) -> Result<Resolved, ConfigError> {
        let home = self.folder.path().join("home").display().to_string();
        let mut all = vec![("SKILLZ_HOME", home.as_str()), ("HOME", "/users/me")];
        all.extend_from_slice(variables);
        resolve(Environment::of(all, self.folder.path().join("work")), flags)
    }

    fn settings(&self, variables: &[(&str, &str)]) -> Resolved {
        self.resolve(variables, &Flags::default()).expect("a good configuration")
    }

    /// The error's text, with the temporary folder cut out.
    fn error(&self, variables: &[(&str, &str)], flags: &Flags) -> String {
        let error = self.resolve(variables, flags).expect_err("a fault");
        error.to_string().replace(&self.folder.path().display().to_string(), "")
    }
}

fn source(resolved: &Resolved, key: &str) -> Source {
    resolved.entries.iter().find(|entry| entry.key == key).expect(key).source.clone()
}

#[test]
fn defaults_hold_where_nobody_says_anything() {
    let resolved = resolve(Environment::of([("HOME", "/users/me")], "/w"), &Flags::default()).expect("defaults");
    let settings = &resolved.settings;
    assert_eq!(settings.home, Path::new("/users/me/.skillz"));
    assert_eq!(settings.tools_dir, Path::new("/users/me/.skillz/tools"));
    assert_eq!((settings.transport, settings.port, settings.watch), (Transport::Stdio, 8080, true));
    assert_eq!((settings.policy.network, settings.policy.fs), (PolicyMode::Declared, None));
    assert_eq!(settings.roots, None);
    assert!(resolved.entries.iter().all(|entry| entry.source == Source::Default));
}

#[test]
fn each_layer_outranks_the_one_below() {
    let place = Place::new().config("port = 1\nhost = \"0.0.0.0\"\nexpose = \"all\"\n");
    let resolved = place.settings(&[]);
    assert_eq!(resolved.settings.port, 1);
    assert_eq!(source(&resolved, "host").to_string(), format!("{}/home/config.toml:2", place.folder.path().display()));

    let resolved = place.settings(&[("SKILLZ_PORT", "2"), ("SKILLZ_EXPOSE", "pinned")]);
    assert_eq!((resolved.settings.port, resolved.settings.expose), (2, Exposure::Pinned));
    assert_eq!(source(&resolved, "port"), Source::Variable("SKILLZ_PORT"));

    let flags = Flags { port: Some(3), watch: Some(false), ..Flags::default() };
    let resolved = place.resolve(&[("SKILLZ_PORT", "2")], &flags).expect("good");
    assert_eq!((resolved.settings.port, resolved.settings.watch), (3, false));
    assert_eq!(source(&resolved, "watch"), Source::Flag("--no-watch"));
}

#[test]
fn unknown_keys_and_wrong_values_name_file_and_line_all_at_once() {
    let place = Place::new().config("prot = 1\n\n[policy]\nnetwork = \"maybe\"\nextra = 1\n[weather]\nrain = true\n");
    let error = place.error(&[("SKILLZ_PORT", "99999")], &Flags { transport: Some("pigeon".to_owned()), ..Flags::default() });
    let lines: Vec<&str> = error.lines().map(|line| line.split(';').next().unwrap_or_default()).collect();
    assert_eq!(
        lines,
        [
            "/home/config.toml:1: There is no setting `prot`",
            "/home/config.toml:4: `policy.network` must be one of `deny`, `ask`, `declared`",
            "/home/config.toml:5: There is no setting `policy.extra`",
            "/home/config.toml:6: There is no setting `weather`",
            "SKILLZ_PORT: The variable must be a whole number from 0 to 65535",
            "--transport: `transport` must be one of `stdio`, `http`",
        ]
    );
}

#[test]
fn a_broken_file_is_an_error_and_a_missing_one_is_fine() {
    assert!(Place::new().config("port = = 1").error(&[], &Flags::default()).starts_with("/home/config.toml:1: This is no TOML"));
    assert!(Place::new().config("\n[policy\n").error(&[], &Flags::default()).starts_with("/home/config.toml:2: This is no TOML"));
    assert!(Place::new().config("home = \"/x\"").error(&[], &Flags::default()).contains("There is no setting `home`"));
    let flags = Flags { config: Some(PathBuf::from("none.toml")), ..Flags::default() };
    assert_eq!(Place::new().error(&[], &flags), "--config: There is no file `/work/none.toml`");
}

#[test]
fn a_workspace_narrows_and_never_widens() {
    let place = Place::new().config("[policy]\nnetwork = \"deny\"\n[limits]\ntimeout_ms = 1000\n").workspace(
        "[policy]\nnetwork = \"declared\"\nenv = \"ask\"\nfs = \"deny\"\n[limits]\ntimeout_ms = 5000\nmemory_mb = 64\n",
    );
    let settings = place.settings(&[]).settings;
    assert_eq!(settings.policy.network, PolicyMode::Deny);
    assert_eq!(settings.policy.env, PolicyMode::Ask);
    assert_eq!(settings.policy.fs, Some(PolicyMode::Deny));
    assert_eq!((settings.limits.timeout_ms, settings.limits.memory_mb), (Some(1000), Some(64)));

    for widening in ["sandbox = \"none\"", "tools_dir = \"/tmp\"", "roots = [\"/\"]", "[memory]\nurl = \"http://a\""] {
        let error = Place::new().workspace(widening).error(&[], &Flags::default());
        assert!(error.contains("may not be set by a workspace"), "{widening}: {error}");
    }
    let narrowed = Place::new().workspace("sandbox_network = false");
    assert!(narrowed.settings(&[("SKILLZ_SANDBOX_NETWORK", "1")]).settings.sandbox_network, "the default was false already");
}

#[test]
fn paths_become_absolute_where_they_were_written() {
    let place = Place::new().config("tools_dir = \"../shared\"\nroots = [\"~/a\", \"/b\"]\n");
    let settings = place.settings(&[]).settings;
    assert_eq!(settings.tools_dir, place.folder.path().join("home/../shared"));
    assert_eq!(settings.roots, Some(vec![PathBuf::from("/users/me/a"), PathBuf::from("/b")]));
    let settings = place.settings(&[("TOOLS_DIR", "mine"), ("SKILLZ_ROOTS", "/x::/y")]).settings;
    assert_eq!(settings.tools_dir, place.folder.path().join("work/mine"));
    assert_eq!(settings.roots, Some(vec![PathBuf::from("/x"), PathBuf::from("/y")]));
}

#[test]
fn secrets_show_nowhere() {
    let resolved = Place::new().settings(&[("SKILLZ_AUTH_TOKEN", "hunter2"), ("SKILLZ_SANDBOX", "none")]);
    assert_eq!(resolved.settings.http.token.as_ref().map(crate::Secret::reveal), Some("hunter2"));
    assert_eq!(resolved.settings.sandbox, Sandbox::None);
    assert!(!format!("{resolved:?}").contains("hunter2"));
}

#[test]
fn the_current_folder_is_a_root_unless_it_is_no_workspace() {
    let roots = |folder: &str, variables: &[(&'static str, &'static str)]| {
        let all = [("HOME", "/root"), ("SKILLZ_HOME", "/s")].into_iter().chain(variables.iter().copied());
        resolve(Environment::of(all, folder), &Flags::default()).expect("good").operator_roots()
    };
    assert_eq!(roots("/work/project", &[]), [PathBuf::from("/work/project")]);
    for folder in ["/", "/root", "/home/me"] {
        assert!(roots(folder, &[]).is_empty(), "{folder}");
    }
    assert_eq!(roots("/", &[("SKILLZ_ROOTS", "/a:/b")]), [PathBuf::from("/a"), PathBuf::from("/b")]);
}
