//! `skillz doctor [--fix]`: looks at everything a tool may need, each fault with its fix.

mod home;
mod machine;
mod servers;
mod toolchain;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use skillz_process::{Command, Keep, Launcher, ProcessLimits, drain};
use skillz_runtime_script::Interpreters;

use crate::{
    context::{Context, runtime},
    report::{Failure, Status},
    table, wire,
};

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Carry out the fixes that Skillz can carry out by itself.
    #[arg(long)]
    fix: bool,
}

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Ok,
    /// Missing, and only some tools miss it.
    Absent,
    /// Broken: something that should work does not.
    Broken,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: String,
    health: Health,
    /// What was found.
    found: String,
    /// What helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// What `--fix` does about it.
    #[serde(skip)]
    remedy: Option<Remedy>,
}

/// What `--fix` can do.
#[derive(Debug)]
enum Remedy {
    MakeFolder(PathBuf),
    Run {
        program: PathBuf,
        arguments: Vec<&'static str>,
    },
    /// Takes environments away, by their hashes.
    RemoveEnvironments(Vec<String>),
}

impl Check {
    fn ok(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self { name: name.into(), health: Health::Ok, found: found.into(), fix: None, remedy: None }
    }

    fn absent(name: impl Into<String>, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { health: Health::Absent, fix: Some(fix.into()), ..Self::ok(name, found) }
    }

    fn broken(name: impl Into<String>, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { health: Health::Broken, fix: Some(fix.into()), ..Self::ok(name, found) }
    }

    fn with_remedy(self, remedy: Remedy) -> Self {
        Self { remedy: Some(remedy), ..self }
    }
}

/// What the checks look with.
struct Examination<'a> {
    context: &'a Context,
    launcher: Launcher,
    interpreters: Interpreters,
}

pub(crate) fn run(arguments: &DoctorArguments, context: &Context) -> anyhow::Result<()> {
    let mut checks = runtime()?.block_on(examine(arguments.fix, context))?;
    checks.sort_by_key(|check| check.health == Health::Ok);
    context.printer.print(&checks, |checks| text(checks))?;
    let broken = checks.iter().filter(|check| check.health == Health::Broken).count();
    if broken == 0 {
        return Ok(());
    }
    Err(Failure::new(Status::ToolFailed, format!("{broken} of {} things are broken", checks.len())).into())
}

async fn examine(fix: bool, context: &Context) -> anyhow::Result<Vec<Check>> {
    let examination = Examination {
        context,
        launcher: wire::launcher(&context.resolved)?,
        interpreters: Interpreters::new(wire::search_path(&context.resolved.environment)),
    };
    let mut checks = examination.all().await?;
    if !fix {
        return Ok(checks);
    }
    let mut changed = false;
    for check in &checks {
        if let Some(remedy) = &check.remedy {
            changed |= examination.apply(remedy).await;
        }
    }
    if changed {
        checks = examination.all().await?;
    }
    Ok(checks)
}

impl Examination<'_> {
    async fn all(&self) -> anyhow::Result<Vec<Check>> {
        let engine = wire::parts(&self.context.resolved, wire::Purpose::OneCommand)?.engine;
        engine.ready().await;
        let mut checks = self.home(&engine).await;
        checks.extend(self.servers(&engine).await?);
        checks.extend(self.toolchain().await);
        checks.extend(self.machine().await);
        Ok(checks)
    }

    async fn apply(&self, remedy: &Remedy) -> bool {
        match remedy {
            Remedy::MakeFolder(folder) => tokio::fs::create_dir_all(folder).await.is_ok(),
            Remedy::Run { program, arguments } => self.ask(program.clone(), arguments).await.is_some(),
            Remedy::RemoveEnvironments(hashes) => self.remove_environments(hashes.clone()).await,
        }
    }

    /// Runs a program of the machine and gives what it printed, or `None` if it did not end well.
    async fn ask(&self, program: PathBuf, arguments: &[&str]) -> Option<String> {
        let variables = ["HOME", "PATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "HTTPS_PROXY", "SSL_CERT_FILE"];
        let environment = &self.context.resolved.environment;
        let environment = variables.iter().filter_map(|name| Some(((*name).into(), environment.get(name)?.into()))).collect();
        let command = Command {
            program,
            arguments: arguments.iter().map(Into::into).collect(),
            environment,
            directory: PathBuf::from("/"),
            policy: None,
            limits: ProcessLimits::default(),
        };
        let mut child = self.launcher.spawn(command).await.ok()?;
        child.stdin = None;
        let (stdout, stderr) = (child.stdout.take()?, child.stderr.take()?);
        let (out, _, exit) =
            tokio::join!(drain(stdout, Keep::Head(64 << 10), None), drain(stderr, Keep::Tail(0), None), child.wait());
        exit.ok().filter(|exit| exit.success())?;
        Some(String::from_utf8_lossy(&out.ok()?.bytes).trim().to_owned())
    }
}

fn text(checks: &[Check]) -> String {
    let mut text = String::new();
    let rows: Vec<[String; 3]> = checks
        .iter()
        .map(|check| {
            let health = match check.health {
                Health::Ok => "ok",
                Health::Absent => "absent",
                Health::Broken => "BROKEN",
            };
            let fix = check.fix.as_ref().map(|fix| format!(". Fix: {fix}")).unwrap_or_default();
            [health.to_owned(), check.name.clone(), format!("{}{fix}", check.found)]
        })
        .collect();
    text.push_str(&table::columns(&rows));
    if checks.iter().any(|check| check.remedy.is_some()) {
        text.push_str("\n`skillz doctor --fix` carries out what it can.\n");
    }
    text
}
