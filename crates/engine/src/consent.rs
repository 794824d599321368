//! The user's consent: asked for once per tool and version, and remembered in `consents.json` of the home.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use skillz_json::{Value, json};
use skillz_tool::{AnswerAction, ErrorKind, Tool, ToolError};
use tokio::sync::Semaphore;

use crate::ClientPort;

/// What users have agreed to.
pub(crate) struct Consents {
    file: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    given: HashSet<Consent>,
    /// Kept for the life of the server only, so that a change of mind is possible.
    declined: HashSet<Consent>,
    /// One question at a time for one consent: calls that arrive together wait for the first one's answer.
    asking: HashMap<Consent, Arc<Semaphore>>,
}

/// One agreement: this tool, exactly as it is, may have these things.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
struct Consent {
    tool: String,
    version: String,
    hash: String,
    allowed: BTreeSet<String>,
}

impl Consents {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, state: Mutex::default() }
    }

    /// Makes sure that the user has agreed to `asks`; asks if nobody has yet.
    pub(crate) async fn require(&self, tool: &Tool, asks: Vec<String>, client: &dyn ClientPort) -> Result<(), ToolError> {
        let consent = Consent {
            tool: tool.name.to_string(),
            version: tool.version.to_string(),
            hash: tool.hash.clone(),
            allowed: asks.into_iter().collect(),
        };
        if self.is_given(&consent) {
            return Ok(());
        }
        let turn = Arc::clone(self.lock().asking.entry(consent.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))));
        let _turn = turn.acquire().await.map_err(ToolError::internal)?;
        let answer = self.ask(&consent, client).await;
        self.lock().asking.remove(&consent);
        answer
    }

    /// Takes what was agreed to while a version was tried over to the version as it was published.
    pub(crate) fn adopt(&self, tried: &Tool, published: &Tool) {
        let adopted: Vec<Consent> = {
            let mut state = self.lock();
            let of_tried: Vec<Consent> = state.given.iter().filter(|consent| consent.hash == tried.hash).cloned().collect();
            state.given.retain(|consent| consent.hash != tried.hash);
            of_tried
        };
        for consent in adopted {
            self.give(Consent { version: published.version.to_string(), hash: published.hash.clone(), ..consent }, true);
        }
    }

    async fn ask(&self, consent: &Consent, client: &dyn ClientPort) -> Result<(), ToolError> {
        // Another call, or another server of this home, may have asked meanwhile.
        if self.is_given(consent) || self.is_in_file(consent).await {
            return Ok(());
        }
        let things = consent.allowed.iter().cloned().collect::<Vec<_>>().join("; ");
        let refusal = |reason: &str| {
            let message =
                format!("`{}` {} asks for {things}, which needs the user's consent, and {reason}", consent.tool, consent.version);
            ToolError::new(ErrorKind::Denied, message)
        };
        if self.lock().declined.contains(consent) {
            return Err(
                refusal("the user has declined").with_hint("Do without this tool, or publish a version that asks for less")
            );
        }
        if !client.capabilities().elicitation {
            return Err(refusal("this client cannot ask the user (it has no elicitation)").with_hint(
                "The operator can grant it in the server's `config.toml` with `[policy]` and `fs`, `network` or `env` = \"declared\", \
                 or add the folder to `SKILLZ_ROOTS`",
            ));
        }
        let question = format!("The tool `{}` (version {}) asks for {things}. Allow it?", consent.tool, consent.version);
        let answer = client.ask_user(&question, schema()).await?;
        let unticked = answer.content.as_ref().and_then(|content| content.get("allow")) == Some(&Value::Bool(false));
        match answer.action {
            AnswerAction::Accept if !unticked => {
                self.give(consent.clone(), !is_being_tried(consent));
                Ok(())
            }
            AnswerAction::Cancel => {
                Err(refusal("the user closed the question")
                    .with_hint("Ask the user whether the tool may have it, and call it again"))
            }
            AnswerAction::Accept | AnswerAction::Decline => {
                self.lock().declined.insert(consent.clone());
                Err(refusal("the user declined").with_hint("Do without this tool, or publish a version that asks for less"))
            }
        }
    }

    fn is_given(&self, consent: &Consent) -> bool {
        self.lock().given.contains(consent)
    }

    async fn is_in_file(&self, consent: &Consent) -> bool {
        let file = self.file.clone();
        let kept = tokio::task::spawn_blocking(move || read(&file)).await.unwrap_or_default();
        let found = kept.contains(consent);
        self.lock().given.extend(kept);
        found
    }

    /// Remembers a consent; in the file too where it is to last. A file that cannot be written costs a question later.
    fn give(&self, consent: Consent, lasting: bool) {
        self.lock().given.insert(consent.clone());
        if lasting && let Err(error) = add(&self.file, consent) {
            tracing::warn!(file = %self.file.display(), %error, "A consent could not be kept");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the hash of a version that is being tried before it is published.
pub(crate) const TRIED: &str = "tried-";

fn is_being_tried(consent: &Consent) -> bool {
    consent.hash.starts_with(TRIED)
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"allow": {"type": "boolean", "title": "Allow", "description": "Allow it for this version of the tool", "default": true}},
        "required": ["allow"],
    })
}

/// What is kept; a missing or unreadable file counts as empty, which costs a question.
fn read(file: &Path) -> BTreeSet<Consent> {
    fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn add(file: &Path, consent: Consent) -> io::Result<()> {
    let mut consents = read(file);
    consents.insert(consent);
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let temporary = file.with_extension(format!("json.{}", uuid::Uuid::new_v4().simple()));
    let written = fs::write(&temporary, serde_json::to_vec_pretty(&consents)?).and_then(|()| fs::rename(&temporary, file));
    if written.is_err() {
        drop(fs::remove_file(&temporary));
    }
    written
}
