//! The same module by bare wasmtime, set up as fast as it goes: nothing but instantiating, running and reading stdout.

use std::time::{Duration, Instant};

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, Linker, Module, PoolingAllocationConfig, Store, StoreLimits,
    StoreLimitsBuilder,
};
use wasmtime_wasi::{
    WasiCtxBuilder,
    p1::{self, WasiP1Ctx},
    p2::pipe::{MemoryInputPipe, MemoryOutputPipe},
};

struct Data {
    wasi: WasiP1Ctx,
    limits: StoreLimits,
}

/// The median of `count` calls, each with a fresh instance.
pub(crate) fn median_call(module: &[u8], input: &[u8], count: usize) -> Duration {
    let mut config = Config::new();
    config.epoch_interruption(true);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(64).total_memories(64).total_tables(64).total_stacks(64);
    pool.linear_memory_keep_resident(2 << 20).table_keep_resident(64 << 10).pagemap_scan(Enabled::Auto);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    let engine = Engine::new(&config).unwrap();
    let mut linker: Linker<Data> = Linker::new(&engine);
    p1::add_to_linker_async(&mut linker, |data: &mut Data| &mut data.wasi).unwrap();
    let start = linker.instantiate_pre(&Module::new(&engine, module).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let started = Instant::now();
            let output = MemoryOutputPipe::new(1 << 20);
            let mut builder = WasiCtxBuilder::new();
            builder.arg("tool").stdin(MemoryInputPipe::new(input.to_vec())).stdout(output.clone());
            builder.stderr(MemoryOutputPipe::new(64 << 10));
            let limits = StoreLimitsBuilder::new().memory_size(256 << 20).build();
            let mut store = Store::new(&engine, Data { wasi: builder.build_p1(), limits });
            store.limiter(|data| &mut data.limits);
            store.set_epoch_deadline(1);
            store.epoch_deadline_async_yield_and_update(1);
            let instance = start.instantiate_async(&mut store).await.unwrap();
            let main = instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap();
            main.call_async(&mut store, ()).await.unwrap();
            drop(store);
            std::hint::black_box(output.contents());
            times.push(started.elapsed());
        }
        crate::median(times)
    })
}
