//! What a deleted script leaves behind: its environment, if no other tool shares it and no call is using it.

use std::{
    collections::HashMap,
    fs,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use skillz_environments::Environments;
use skillz_tool::Tool;

use crate::install::LOCK_FILE;

/// Held by a call for as long as it needs an environment.
pub(crate) type EnvironmentUse = Arc<()>;

/// Who uses which environment, by its hash.
#[derive(Clone, Default)]
pub(crate) struct EnvironmentUses(Arc<Mutex<HashMap<String, EnvironmentUse>>>);

impl EnvironmentUses {
    /// Notes a use, which ends when what this gives is dropped.
    pub(crate) fn of(&self, hash: &str) -> EnvironmentUse {
        let mut uses = self.locked();
        match uses.get(hash) {
            Some(known) => Arc::clone(known),
            None => Arc::clone(uses.entry(hash.to_owned()).or_default()),
        }
    }

    /// Has `take` take an environment away, unless it is in use. No use begins meanwhile, so it must not take long.
    fn unless_used<T>(&self, hash: &str, take: impl FnOnce() -> T) -> Option<T> {
        let mut uses = self.locked();
        if uses.get(hash).is_some_and(|used| Arc::strong_count(used) > 1) {
            return None;
        }
        uses.remove(hash);
        Some(take())
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, EnvironmentUse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the environment of a deleted tool. One that is in use stays, for `skillz doctor --fix` to remove.
pub(crate) async fn run(environments: &Environments, uses: &EnvironmentUses, tool: &Tool, others: &[Arc<Tool>]) {
    let (environments, uses, folder) = (environments.clone(), uses.clone(), tool.directory.clone());
    let others: Vec<_> = others.iter().map(|other| other.directory.clone()).collect();
    let name = tool.name.clone();
    let removed = tokio::task::spawn_blocking(move || {
        let Ok(lock) = fs::read_to_string(folder.join(LOCK_FILE)) else { return };
        let others: Vec<String> = others.iter().filter_map(|other| fs::read_to_string(other.join(LOCK_FILE)).ok()).collect();
        for hash in environments.only_for(&lock, &others).unwrap_or_default() {
            match uses.unless_used(&hash, || environments.take_away(&hash)) {
                Some(Ok(removed)) => {
                    drop(removed);
                    tracing::info!(tool = %name, environment = hash, "removed the dependencies of a deleted tool");
                }
                Some(Err(error)) => {
                    tracing::warn!(tool = %name, environment = hash, %error, "dependencies could not be removed");
                }
                None => {}
            }
        }
    });
    drop(removed.await);
}
