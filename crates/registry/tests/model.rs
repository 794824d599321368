//! Random operations against a model that remembers everything: no version that was ever acknowledged is lost,
//! and what is in service is what the model says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by them")]

mod workshop;

use std::collections::BTreeMap;

use proptest::{prelude::*, test_runner::Config};
use workshop::{Workshop, name};

/// Names in play; few, so that operations meet.
const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Debug, Clone)]
enum Step {
    Publish,
    /// By hand, and recorded.
    Edit,
    /// By hand, and noticed by nobody before the next step.
    EditUnnoticed,
    Delete,
    /// To the version at that place of the list, counted round.
    Rollback(usize),
    Reload,
    Restart,
    /// The manifest is overwritten with something unreadable, and written back after a reload.
    Break,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let step = prop_oneof![
        4 => Just(Step::Publish),
        2 => Just(Step::Edit),
        1 => Just(Step::EditUnnoticed),
        2 => Just(Step::Delete),
        3 => (0..20_usize).prop_map(Step::Rollback),
        1 => Just(Step::Reload),
        1 => Just(Step::Restart),
        1 => Just(Step::Break),
    ];
    (0..NAMES.len(), step)
}

#[derive(Debug, Default)]
struct ModelTool {
    versions: BTreeMap<String, String>,
    /// The code in service.
    served: Option<String>,
    /// An edit in the folder that nobody has noticed.
    unnoticed: Option<String>,
}

#[derive(Default)]
struct Model {
    tools: BTreeMap<&'static str, ModelTool>,
    counter: usize,
}

impl Model {
    async fn play(&mut self, mut workshop: Workshop, tool: &'static str, step: Step) -> Workshop {
        self.counter += 1;
        let code = format!("code {}", self.counter);
        let model = self.tools.entry(tool).or_default();
        match step {
            Step::Publish => {
                let published = workshop.publish(tool, &code).await.unwrap();
                model.publish(&workshop, tool, &published.version.to_string(), &code).await;
            }
            Step::Edit if model.served.is_some() => {
                workshop.write(&format!("{tool}/main.py"), &code);
                workshop.registry.reload().await;
                let edit = workshop.registry.stage_edit(&name(tool)).await.unwrap().unwrap();
                let version = workshop.registry.record_edit(edit).await.unwrap().version.to_string();
                model.unnoticed = None;
                model.publish(&workshop, tool, &version, &code).await;
            }
            Step::EditUnnoticed if model.served.is_some() => {
                workshop.write(&format!("{tool}/main.py"), &code);
                model.unnoticed = Some(code);
            }
            Step::Delete if model.served.is_some() => {
                workshop.registry.delete(&name(tool)).await.unwrap();
                (model.served, model.unnoticed) = (None, None);
            }
            Step::Rollback(place) if !model.versions.is_empty() => {
                let list = workshop.versions(tool).await.versions;
                let to = list[place % list.len()].version.to_string();
                let code = model.versions.get(&to).cloned();
                let published = workshop.rollback(tool, &to).await.unwrap();
                if let Some(code) = code {
                    model.publish(&workshop, tool, &published.version.to_string(), &code).await;
                } else {
                    // A version that the model did not make: an unnoticed edit that went to the trash.
                    let code = workshop.served(tool).unwrap();
                    model.publish(&workshop, tool, &published.version.to_string(), &code).await;
                }
            }
            Step::Break if model.served.is_some() => {
                let manifest = workshop.read(&format!("{tool}/manifest.json"));
                workshop.write(&format!("{tool}/manifest.json"), "{");
                workshop.registry.reload().await;
                assert_eq!(workshop.served(tool), model.served, "a broken manifest hid {tool}");
                workshop.write(&format!("{tool}/manifest.json"), &manifest);
                workshop.registry.reload().await;
            }
            Step::Restart => workshop = workshop.restarted(false).await,
            Step::Reload => workshop.registry.reload().await,
            Step::Edit | Step::EditUnnoticed | Step::Delete | Step::Rollback(_) | Step::Break => {}
        }
        self.check(&workshop).await;
        workshop
    }

    async fn check(&self, workshop: &Workshop) {
        for (tool, model) in &self.tools {
            assert_eq!(workshop.served(tool), model.served, "what is served for {tool}");
            for (version, code) in &model.versions {
                let found = workshop.registry.tool_version(&name(tool), version.parse().unwrap()).await;
                let found = found.unwrap_or_else(|error| panic!("{tool} {version} is lost: {error}"));
                let kept = std::fs::read_to_string(found.source_path().unwrap()).unwrap();
                assert_eq!(&kept, code, "{tool} {version}");
            }
        }
    }
}

impl ModelTool {
    async fn publish(&mut self, workshop: &Workshop, tool: &str, version: &str, code: &str) {
        assert!(!self.versions.contains_key(version), "{tool} {version} was given twice");
        if let Some(unnoticed) = self.unnoticed.take() {
            let kept = workshop.history(tool).await.into_iter().any(|(_, _, code)| code == unnoticed);
            assert!(kept, "the unnoticed edit of {tool} is lost");
        }
        self.versions.insert(version.to_owned(), code.to_owned());
        self.served = Some(code.to_owned());
    }
}

proptest! {
    #![proptest_config(Config { cases: 12, max_shrink_iters: 100, failure_persistence: None, ..Config::default() })]
    #[test]
    fn nothing_is_ever_lost(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut workshop = Workshop::new().await;
            let mut model = Model::default();
            for (tool, step) in steps {
                workshop = model.play(workshop, NAMES[tool], step).await;
            }
        });
    }
}
