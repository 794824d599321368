//! Tells connected clients that lists have changed: each session follows the engine's counter by itself, so
//! that changes in quick succession become one note and a slow client holds up nobody.

use std::{collections::BTreeMap, sync::Weak, time::Duration};

use rmcp::{
    RoleServer,
    model::ResourceUpdatedNotificationParam,
    service::{Peer, ServiceError, SubscriptionSendError, SubscriptionSink},
};
use skillz_engine::Engine;
use tokio::sync::watch;

use crate::{resources, session::Session};

/// How long further changes are waited for before clients are told.
const GATHER: Duration = Duration::from_millis(20);

/// Tells a client of the older protocols about each change that it does not know, until it is gone. `loaded`
/// is the change counter of the first moment at which anything was shown to anybody.
pub(crate) async fn follow_session(engine: &Engine, session: Weak<Session>, loaded: u64, peer: Peer<RoleServer>) {
    let mut changes = engine.changes();
    let Some(mut seen) = session.upgrade().map(|session| session.seen_changes().max(loaded)) else { return };
    while changed(&mut changes, &mut seen).await {
        let Some(session) = session.upgrade() else { return };
        let updated = session.changed_subscriptions(|uri| resources::state(engine, uri));
        drop(session);
        if tell_session(&peer, updated).await.is_err() {
            return;
        }
    }
}

async fn tell_session(peer: &Peer<RoleServer>, updated: Vec<String>) -> Result<(), ServiceError> {
    peer.notify_tool_list_changed().await?;
    peer.notify_resource_list_changed().await?;
    peer.notify_prompt_list_changed().await?;
    for uri in updated {
        peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await?;
    }
    Ok(())
}

/// Tells one `subscriptions/listen` stream about each change after `seen`, until it is closed.
pub(crate) async fn follow_stream(engine: &Engine, mut seen: u64, sink: &SubscriptionSink) {
    let mut changes = engine.changes();
    let uris = sink.accepted().resource_subscriptions.iter().flatten();
    // A change before this line counts as told only if the counter says so.
    let fresh = *changes.borrow() == seen;
    let mut known: BTreeMap<&String, Option<String>> =
        uris.map(|uri| (uri, if fresh { resources::state(engine, uri) } else { None })).collect();
    while changed(&mut changes, &mut seen).await {
        let mut updated = Vec::new();
        for (uri, known) in &mut known {
            let now = resources::state(engine, uri);
            if now != *known {
                *known = now;
                updated.push((*uri).clone());
            }
        }
        if tell_stream(sink, updated).await.is_err() {
            return;
        }
    }
}

async fn tell_stream(sink: &SubscriptionSink, updated: Vec<String>) -> Result<(), SubscriptionSendError> {
    let accepted = sink.accepted();
    if accepted.tools_list_changed == Some(true) {
        sink.notify_tool_list_changed().await?;
    }
    if accepted.resources_list_changed == Some(true) {
        sink.notify_resource_list_changed().await?;
    }
    if accepted.prompts_list_changed == Some(true) {
        sink.notify_prompt_list_changed().await?;
    }
    for uri in updated {
        sink.notify_resource_updated(uri).await?;
    }
    Ok(())
}

/// Waits until the counter is not `seen` any more, and a moment longer. `false` when there will be no more changes.
async fn changed(changes: &mut watch::Receiver<u64>, seen: &mut u64) -> bool {
    if changes.wait_for(|count| *count != *seen).await.is_err() {
        return false;
    }
    tokio::time::sleep(GATHER).await;
    *seen = *changes.borrow_and_update();
    true
}
