//! One call: a fresh guest on the guests' threads, and the caller's side that watches the clock and carries out
//! what the guest asks for.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Either},
};
use skillz_json::{Value, json};
use skillz_tool::{CallClock, Host, LogLevel, ToolCall, ToolError, ToolOutcome, dispatch_request};
use tokio::sync::mpsc;
use wasmtime::{PoolConcurrencyLimitError, Store};

use super::{
    engine::Code,
    failure::{self, Ending},
    guest::{Answer, Guest, HostLink, HostRequest, MemoryLimit},
    guest_threads::GuestThreads,
    import::Allowance,
    log_lines::LogLines,
    modules::{Loaded, Modules},
    output::GuestOutput,
    ticker::Ticker,
    wasi,
};
use crate::http::HttpClients;

/// Shortest wait between two looks at a clock that stands still.
const CLOCK_CHECK: Duration = Duration::from_millis(10);
/// Bytes of stdout that go to the log where the tool returned a value besides.
const LOGGED_STDOUT: usize = 64 << 10;

/// Runs calls.
pub(crate) struct Caller {
    pub(crate) threads: Arc<GuestThreads>,
    pub(crate) ticker: Arc<Ticker>,
    pub(crate) modules: Arc<Modules>,
    pub(crate) http: Arc<HttpClients>,
    /// Held while a guest runs on its caller's thread.
    pub(crate) turn: Mutex<()>,
}

/// Where a guest runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the threads that are there for it, but for its first slice.
    GuestThreads,
    /// On the caller's thread, to measure what handing over costs.
    Here,
}

/// What the guest's thread hands back.
struct Finished {
    ending: Ending,
    answer: Answer,
}

impl Caller {
    /// Runs one call of a loaded module to its end.
    pub(crate) async fn call(
        &self,
        call: ToolCall,
        host: Arc<dyn Host>,
        module: Arc<Loaded>,
        place: Place,
    ) -> Result<ToolOutcome, ToolError> {
        let output = GuestOutput::new(call.limits.max_output_bytes, LogLines::new(Arc::clone(&host)));
        let (requests, mut receiver) = mpsc::unbounded_channel();
        let guest = self.guest(&call, Arc::clone(&host), &output, requests)?;
        let ticker = Arc::clone(&self.ticker);
        let modules = Arc::clone(&self.modules);
        let running = async move {
            let _running = ticker.enter();
            run(guest, &modules, &module).await
        };
        let mut running = Box::pin(running);
        if let Some(finished) = self.first_slice(running.as_mut()) {
            return conclude(&call, &*host, &output, finished);
        }
        let mut task = match place {
            Place::GuestThreads => Either::Left(self.threads.spawn(running)?),
            Place::Here => Either::Right(running.map(Ok)),
        };
        let finished = {
            let mut pending: Option<BoxFuture<'_, ()>> = None;
            loop {
                tokio::select! {
                    biased;
                    finished = &mut task => break finished,
                    () = async { if let Some(request) = &mut pending { request.await } }, if pending.is_some() => pending = None,
                    Some(request) = receiver.recv(), if pending.is_none() => {
                        pending = Some(Box::pin(carry_out(&*host, request)));
                    }
                    () = time_is_up(&call.clock) => return Err(failure::timed_out(&call, &output)),
                }
            }
        };
        let finished = finished.map_err(|error| ToolError::internal(format!("The guest's thread failed: {error}")))?;
        conclude(&call, &*host, &output, finished)
    }

    /// Runs a guest on the caller's thread until it ends, waits, or a tick is over: most calls are done before another
    /// thread would have woken up. One at a time, so that the protocol's other threads stay free.
    fn first_slice(&self, running: Pin<&mut impl Future<Output = Finished>>) -> Option<Finished> {
        let _turn = self.turn.try_lock().ok()?;
        // Nobody need be woken: whoever runs the rest begins by polling it.
        match running.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(finished) => Some(finished),
            Poll::Pending => None,
        }
    }

    fn guest(
        &self,
        call: &ToolCall,
        host: Arc<dyn Host>,
        output: &Arc<GuestOutput>,
        requests: mpsc::UnboundedSender<HostRequest>,
    ) -> Result<Guest, ToolError> {
        let input = serde_json::to_vec(&call.arguments).map_err(ToolError::internal)?;
        let link = HostLink {
            tool_name: call.tool.name.as_str().into(),
            host,
            requests,
            max_output_bytes: call.limits.max_output_bytes,
            network: call.grants.network.clone(),
            http: Arc::clone(&self.http),
            ticker: Arc::clone(&self.ticker),
            reply: Vec::new(),
            answer: Answer::default(),
            refused_network: None,
            progress: Allowance::new(),
        };
        let memory = MemoryLimit::new(call.limits.memory_bytes);
        Ok(Guest { wasi: wasi::context(call, input, output)?, memory, link })
    }
}

/// Runs a guest to its end.
async fn run(guest: Guest, modules: &Modules, module: &Loaded) -> Finished {
    let code = module.code();
    let mut store = store(&code, guest);
    let mut result = start(&mut store, &code).await;
    if result.as_ref().is_err_and(wasmtime::Error::is::<PoolConcurrencyLimitError>) {
        // Nothing of the guest has run yet. Code of the other engine takes its memory from the system.
        if let Some(code) = modules.without_pool(module) {
            store = self::store(&code, store.into_data());
            result = start(&mut store, &code).await;
        }
    }
    let guest = store.into_data();
    let ending = Ending::new(result, guest.memory.refused, guest.link.refused_network);
    Finished { ending, answer: guest.link.answer }
}

fn store(code: &Code, guest: Guest) -> Store<Guest> {
    let mut store = Store::new(code.start.module().engine(), guest);
    store.limiter(|guest| &mut guest.memory);
    store.set_epoch_deadline(1);
    store.epoch_deadline_async_yield_and_update(1);
    store
}

async fn start(store: &mut Store<Guest>, code: &Code) -> wasmtime::Result<()> {
    let instance = code.start.instantiate_async(&mut *store).await?;
    instance.get_typed_func::<(), ()>(&mut *store, "_start")?.call_async(&mut *store, ()).await
}

/// Carries out a guest's request in the call's own task, so that it ends with the call.
async fn carry_out(host: &dyn Host, request: HostRequest) {
    let reply = match dispatch_request(host, &request.method, request.params).await {
        Ok(result) => json!({"result": result}),
        Err(error) => json!({"error": {"code": error.code, "message": error.message, "data": error.data}}),
    };
    // The guest may have been stopped in the meantime.
    let _ = request.reply.send(reply.to_string().into_bytes());
}

/// Waits until the clock has run out. It may stand still for a while, so it is asked again.
async fn time_is_up(clock: &CallClock) {
    loop {
        let left = clock.remaining();
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.max(CLOCK_CHECK)).await;
    }
}

fn conclude(call: &ToolCall, host: &dyn Host, output: &GuestOutput, finished: Finished) -> Result<ToolOutcome, ToolError> {
    let Finished { ending, mut answer } = finished;
    if !ending.is_success() {
        return Err(failure::describe(call, output, ending));
    }
    if let Some(message) = answer.failure.take() {
        return Err(failure::reported(call, output, &ending, &message));
    }
    output.finish_stderr();
    let stdout = output.take_stdout();
    if let Some(value) = answer.value.take() {
        log_stdout(host, &stdout);
        return Ok(ToolOutcome::value(value));
    }
    if stdout.is_empty() && !answer.chunks.is_empty() {
        return Ok(ToolOutcome::value(Value::String(answer.chunks)));
    }
    Ok(match String::from_utf8(stdout) {
        Ok(text) => ToolOutcome::printed(text),
        Err(error) => {
            let mut outcome = ToolOutcome::printed(String::from_utf8_lossy(error.as_bytes()));
            outcome.notes.push("Bytes that are not UTF-8 were replaced".to_owned());
            outcome
        }
    })
}

/// What a tool that returns a value prints besides belongs in the log.
fn log_stdout(host: &dyn Host, stdout: &[u8]) {
    let text = String::from_utf8_lossy(stdout.get(..LOGGED_STDOUT).unwrap_or(stdout));
    let text = text.trim_end();
    if !text.is_empty() {
        host.log(LogLevel::Info, text, None);
    }
}
