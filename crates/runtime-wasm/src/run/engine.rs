//! The two compilers: Winch, which is quick, and Cranelift, whose code is quick. Each has its engine, made when
//! first needed, with everything that a guest may import.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, OnceLock},
};

use skillz_tool::ToolError;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, InstancePre, Linker, Module, PoolingAllocationConfig, Strategy,
};

use super::{guest::Guest, import, ticker::Ticker, wasi};

/// Guests that live at once in the pool; more get memory of their own, which is slower. Each place makes the first
/// call after a start about 3 µs longer.
const POOL_SLOTS: u32 = 128;
/// Memory that a pool slot keeps for its next guest: what small guests touch, so that they cost no page faults.
const KEEP_RESIDENT: usize = 2 << 20;
/// Slots that keep their memory while no guest uses them.
const WARM_SLOTS: u32 = 64;
/// Largest function table, in elements. Large programs of other languages need tens of thousands.
const TABLE_ELEMENTS: usize = 100_000;

/// Which compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Winch: compiles about six times faster.
    Quick,
    /// Cranelift: the code runs about twice as fast.
    Optimised,
}

/// One compiler with its instances' memory and imports.
pub(crate) struct GuestEngine {
    pub(crate) engine: Engine,
    pub(crate) tier: Tier,
    /// Tells machine code for one engine from that for another, in file names.
    pub(crate) fingerprint: String,
    linker: Linker<Guest>,
}

/// A module that can be started.
pub(crate) struct Code {
    pub(crate) tier: Tier,
    pub(crate) start: InstancePre<Guest>,
}

/// Both engines.
pub(crate) struct Engines {
    ticker: Arc<Ticker>,
    quick: OnceLock<Result<GuestEngine, String>>,
    optimised: OnceLock<Result<GuestEngine, String>>,
    unpooled: OnceLock<Result<GuestEngine, String>>,
}

/// Where instances have their memory from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    Pool,
    System,
}

impl Engines {
    pub(crate) fn new(ticker: Arc<Ticker>) -> Self {
        Self { ticker, quick: OnceLock::new(), optimised: OnceLock::new(), unpooled: OnceLock::new() }
    }

    /// The engine of a tier, made at the first use.
    pub(crate) fn get(&self, tier: Tier) -> Result<&GuestEngine, ToolError> {
        match tier {
            // Its code runs a few times and is then replaced: no pool is kept for it.
            Tier::Quick => self.make(&self.quick, tier, Memory::System),
            Tier::Optimised => self.make(&self.optimised, tier, Memory::Pool),
        }
    }

    /// Whether the engine of a tier has been made.
    pub(crate) fn is_made(&self, tier: Tier) -> bool {
        match tier {
            Tier::Quick => self.quick.get().is_some(),
            Tier::Optimised => self.optimised.get().is_some(),
        }
    }

    /// An engine for Cranelift's code whose instances take their memory from the system, however many there are.
    pub(crate) fn unpooled(&self) -> Result<&GuestEngine, ToolError> {
        self.make(&self.unpooled, Tier::Optimised, Memory::System)
    }

    fn make<'a>(
        &self,
        cell: &'a OnceLock<Result<GuestEngine, String>>,
        tier: Tier,
        memory: Memory,
    ) -> Result<&'a GuestEngine, ToolError> {
        let engine = cell.get_or_init(|| {
            let engine = GuestEngine::new(tier, memory).map_err(|error| format!("{error:#}"))?;
            self.ticker.watch(&engine.engine);
            Ok(engine)
        });
        engine.as_ref().map_err(|error| ToolError::internal(format!("The WebAssembly engine could not be made: {error}")))
    }
}

impl GuestEngine {
    fn new(tier: Tier, memory: Memory) -> wasmtime::Result<Self> {
        let engine = match memory {
            Memory::System => Engine::new(&config(tier))?,
            Memory::Pool => pooled_engine(tier)?,
        };
        let mut linker = Linker::new(&engine);
        wasi::add_to_linker(&mut linker)?;
        import::add_to_linker(&mut linker)?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let fingerprint = format!("{:016x}", hasher.finish());
        Ok(Self { engine, tier, fingerprint, linker })
    }

    /// Makes a compiled module ready to start; the imports are resolved here, once.
    pub(crate) fn link(&self, module: &Module) -> wasmtime::Result<Code> {
        Ok(Code { tier: self.tier, start: self.linker.instantiate_pre(module)? })
    }
}

/// What both engines have in common. A change here changes the fingerprint where it changes the code.
fn config(tier: Tier) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        // Neither is needed to stop a guest or to tell why it stopped, and both make every file larger.
        .generate_address_map(false)
        .native_unwind_info(cfg!(windows));
    match tier {
        Tier::Quick => config.strategy(Strategy::Winch),
        // On one thread: it works in the background, and shall leave the other cores to calls.
        Tier::Optimised => config.strategy(Strategy::Cranelift).parallel_compilation(false),
    };
    config
}

/// An engine whose instances take their memory from a pool; where the address space is too small for one, without.
fn pooled_engine(tier: Tier) -> wasmtime::Result<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(POOL_SLOTS)
        .total_memories(POOL_SLOTS)
        .total_tables(POOL_SLOTS)
        .total_stacks(POOL_SLOTS)
        .max_unused_warm_slots(WARM_SLOTS)
        .table_elements(TABLE_ELEMENTS)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut pooled = config(tier);
    pooled.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&pooled).or_else(|error| {
        tracing::warn!(%error, "WASM tools run without a memory pool, which makes their calls slower");
        Engine::new(&config(tier))
    })
}
