//! What a guest finds around it: nothing but its arguments, its output and what the call grants.

use std::{sync::Arc, time::Duration};

use skillz_tool::{FolderMode, ToolCall, ToolError};
use wasmtime::Linker;
use wasmtime_wasi::{
    Deterministic, FsPerms, HostMonotonicClock, HostWallClock, WasiCtxBuilder,
    p1::{self, WasiP1Ctx},
    p2::pipe::MemoryInputPipe,
};

use super::{guest::Guest, output::GuestOutput};

/// The time that frozen clocks show: 2000-01-01T00:00:00Z.
const FROZEN_TIME: Duration = Duration::from_hours(262_968);
/// Length of the random bytes of a deterministic guest, after which they repeat.
const SEEDED_BYTES: usize = 64 << 10;

/// A guest ended itself.
#[derive(Debug, thiserror::Error)]
#[error("The program ended with exit code {0}")]
pub(crate) struct ProgramExit(pub(crate) i32);

/// Adds the WASI functions of a command (`wasi_snapshot_preview1`).
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    p1::add_to_linker_async(linker, |guest: &mut Guest| &mut guest.wasi)?;
    // The original refuses exit codes from 126 on and then forgets which one it was.
    linker.allow_shadowing(true);
    linker.func_wrap("wasi_snapshot_preview1", "proc_exit", |code: i32| -> wasmtime::Result<()> {
        Err(ProgramExit(code).into())
    })?;
    linker.allow_shadowing(false);
    Ok(())
}

/// The WASI side of one call.
pub(crate) fn context(call: &ToolCall, input: Vec<u8>, output: &Arc<GuestOutput>) -> Result<WasiP1Ctx, ToolError> {
    let mut builder = WasiCtxBuilder::new();
    builder
        .arg(call.tool.name.as_str())
        .stdin(MemoryInputPipe::new(input))
        .stdout(output.stdout_stream())
        .stderr(output.stderr_stream());
    for variable in &call.grants.environment {
        builder.env(&variable.name, &variable.value);
    }
    for folder in &call.grants.folders {
        let permission = match folder.mode {
            FolderMode::Ro => FsPerms::ReadOnly,
            FolderMode::Rw => FsPerms::ReadWrite,
        };
        let path = folder.path.to_string_lossy();
        builder.preopened_dir(&folder.path, &*path, permission).map_err(|error| {
            ToolError::failed(format!("The folder `{path}`, granted to `{}`, could not be opened: {error}", call.tool.name))
                .with_hint("Create the folder, or take it out of the tool's `permissions.fs`")
        })?;
    }
    if call.limits.deterministic {
        freeze(&mut builder);
    }
    Ok(builder.build_p1())
}

/// Stops both clocks and makes random numbers the same in every call.
fn freeze(builder: &mut WasiCtxBuilder) {
    builder
        .wall_clock(FrozenClock)
        .monotonic_clock(FrozenClock)
        .secure_random(Deterministic::new(seeded_bytes(1)))
        .insecure_random(Deterministic::new(seeded_bytes(2)))
        .insecure_random_seed(0);
}

/// Pseudo-random bytes by SplitMix64, the same on every machine.
fn seeded_bytes(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(SEEDED_BYTES);
    while bytes.len() < SEEDED_BYTES {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = state;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(value ^ (value >> 31)).to_le_bytes());
    }
    bytes
}

struct FrozenClock;

impl HostWallClock for FrozenClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        FROZEN_TIME
    }
}

impl HostMonotonicClock for FrozenClock {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}
