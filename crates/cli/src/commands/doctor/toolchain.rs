//! What Rust tools are built with.

use std::path::Path;

use super::{Check, Examination, Remedy};

const TARGET: &str = "wasm32-wasip1";

impl Examination<'_> {
    pub(super) async fn toolchain(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        let install = "install Rust from rustup, or with your system's packages";
        let Some(rustc) = self.interpreters.locate("rustc") else {
            checks.push(Check::absent("rustc", "there is no Rust compiler, so no Rust tools can be built", install));
            return checks;
        };
        match self.ask(rustc.clone(), &["--version"]).await {
            Some(version) => checks.push(Check::ok("rustc", format!("{version} ({})", rustc.display()))),
            None => checks.push(Check::broken("rustc", format!("{} does not run", rustc.display()), install)),
        }
        checks.push(match self.interpreters.locate("cargo") {
            Some(cargo) => Check::ok("cargo", cargo.display().to_string()),
            None => Check::absent("cargo", "there is no cargo, so Rust tools cannot use crates", install),
        });
        let sysroot = self.ask(rustc, &["--print", "sysroot"]).await.unwrap_or_default();
        checks.push(self.target(Path::new(&sysroot)));
        checks
    }

    fn target(&self, sysroot: &Path) -> Check {
        let library = sysroot.join("lib/rustlib").join(TARGET).join("lib");
        let standard = std::fs::read_dir(&library).into_iter().flatten().flatten();
        if standard.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("libstd-")) {
            return Check::ok(TARGET, library.display().to_string());
        }
        let check = Check::absent(TARGET, "the target of Rust tools is not installed", format!("rustup target add {TARGET}"));
        match self.interpreters.locate("rustup") {
            Some(rustup) => check.with_remedy(Remedy::Run { program: rustup, arguments: vec!["target", "add", TARGET] }),
            None => check,
        }
    }
}
