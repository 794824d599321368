//! Calls that wait for their client's answers between two requests of the stateless protocol.
//!
//! A call is parked as it is, process and all, and goes on when the client comes back: it is never run twice.
//! The client holds a sealed ticket, good once, for ten minutes, and only for the same call of the same client.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    ErrorData,
    model::{RequestStateCodec, SealOptions},
};
use tokio_util::task::AbortOnDropHandle;

use crate::running::Running;

/// How long a call waits.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// What a ticket is good for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallIdentity {
    /// Who called.
    pub(crate) caller: String,
    /// The tool.
    pub(crate) tool_name: String,
    /// The hash of its arguments, which are not kept: few calls are ever parked.
    pub(crate) arguments: u64,
}

/// All calls that wait.
pub(crate) struct ParkingLot {
    codec: RequestStateCodec,
    waiting: Arc<Mutex<HashMap<u128, Parked>>>,
}

struct Parked {
    running: Running,
    identity: CallIdentity,
    /// Ends the call when the time is over.
    _expiry: AbortOnDropHandle<()>,
}

impl ParkingLot {
    /// A lot whose tickets only this process can open.
    pub(crate) fn new() -> Self {
        let key: Vec<u8> =
            [uuid::Uuid::new_v4(), uuid::Uuid::new_v4(), uuid::Uuid::new_v4()].iter().flat_map(|part| *part.as_bytes()).collect();
        Self { codec: RequestStateCodec::new_unchecked(key), waiting: Arc::default() }
    }

    /// Parks a call and gives the ticket for it.
    pub(crate) fn park(&self, running: Running, identity: CallIdentity) -> String {
        let number = uuid::Uuid::new_v4().as_u128();
        let bound_to = identity.bound_to();
        let waiting = Arc::downgrade(&self.waiting);
        let expiry = tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            let Some(waiting) = waiting.upgrade() else { return };
            let expired = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
            drop(expired);
        });
        let parked = Parked { running, identity, _expiry: AbortOnDropHandle::new(expiry) };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(number, parked);
        let options = SealOptions::new().associated_data(bound_to.as_bytes()).ttl(PATIENCE);
        self.codec.seal_with(&number.to_be_bytes(), &options)
    }

    /// Takes the call out that `ticket` is for.
    pub(crate) fn resume(&self, ticket: &str, identity: &CallIdentity) -> Result<Running, ErrorData> {
        let opened = self.codec.open_with(ticket, identity.bound_to().as_bytes());
        let number = opened.ok().and_then(|bytes| bytes.try_into().ok()).map(u128::from_be_bytes);
        let Some(number) = number else {
            return Err(ErrorData::invalid_params(
                "The `requestState` is not one that was given to this client for this tool, or it is too old",
                None,
            ));
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.get(&number) {
            None => Err(ErrorData::invalid_params(
                "The call behind this `requestState` does not wait any more: it was answered already, or waited for ten minutes. \
                 Call the tool again without `requestState`",
                None,
            )),
            Some(parked) if parked.identity != *identity => {
                Err(ErrorData::invalid_params("The arguments are not those that the call was started with", None))
            }
            Some(_) => waiting
                .remove(&number)
                .map(|parked| parked.running)
                .ok_or_else(|| ErrorData::internal_error("The call is gone", None)),
        }
    }
}

impl CallIdentity {
    fn bound_to(&self) -> String {
        format!("{}\n{}", self.caller, self.tool_name)
    }
}
