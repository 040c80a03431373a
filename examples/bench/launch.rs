//! CPU time of one launch, from bare wgpu up to a tensor op: the time until everything is enqueued and
//! submitted. The device is idle at the start and is not waited for.

use std::time::Instant;

use burn::tensor::{Device, Tensor};
use inpage::{
    device::{Gpu, Graph, upload},
    ops::{
        launches,
        norm::{NormParams, norm},
    },
};
use serde_json::json;

use crate::{
    Outcome,
    machine::{Machine, round},
    raw::RawGpu,
    timing::{ROUNDS, median, seconds},
};

/// Dispatches of a round. One graph holds them all, because passing a replay to the runtime's thread
/// takes longer than the dispatches when other programs are using the cores.
const DISPATCHES: usize = 1024;
/// Elements of the tensors: so few that the CPU takes nearly all of the time.
const ELEMENTS: usize = 64;

pub async fn run(machine: &Machine) -> Outcome<()> {
    let Some(gpu) = machine.gpu() else {
        return Ok(());
    };
    let raw = RawGpu::request().await?;
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        rounds.push(raw.launch_seconds(DISPATCHES)?);
    }
    report(machine, "raw_wgpu", rounds);

    // On a device of burn's own, because ours compiles no kernels of burn.
    #[allow(clippy::disallowed_methods)]
    let x = Tensor::<2>::ones([1, ELEMENTS], &Device::wgpu(Default::default()));
    let add = || {
        for _ in 0..DISPATCHES {
            drop(x.clone() + 1.0);
        }
        Ok(())
    };
    report(machine, "burn_tensor_op", timed(gpu, add).await?);

    let x = upload(vec![1.0; ELEMENTS], [1, ELEMENTS], gpu.device());
    let weight = upload(vec![1.0; ELEMENTS], [ELEMENTS], gpu.device());
    let params = NormParams::rms(weight, 1e-5);
    let before = launches();
    let normalize = || {
        for _ in 0..DISPATCHES {
            drop(norm(x.clone(), params.clone(), None, machine.variant));
        }
        Ok(())
    };
    report(machine, "source_kernel", timed(gpu, normalize).await?);
    let launched = launches() - before;
    if launched != ((ROUNDS + 1) * DISPATCHES) as u64 {
        return Err(format!("{launched} launches instead of {DISPATCHES} a round").into());
    }

    let graph = Graph::record(gpu, || {
        // Outputs are kept to the end. As in a model, every launch has its own.
        (0..DISPATCHES)
            .map(|_| norm(x.clone(), params.clone(), None, machine.variant))
            .collect::<Vec<_>>()
    })
    .await?;
    let replay = || {
        // SAFETY: `x` and `params` outlive the graph; there is only this thread.
        unsafe { graph.replay(gpu) }
    };
    report(machine, "graph_replay", timed(gpu, replay).await?);
    Ok(())
}

/// Seconds of each round; the first one warms up.
async fn timed(gpu: &Gpu, work: impl Fn() -> inpage::Result<()>) -> Outcome<Vec<f64>> {
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        gpu.sync().await?;
        let start = Instant::now();
        work()?;
        gpu.flush()?;
        rounds.push(seconds(start));
    }
    gpu.sync().await?;
    Ok(rounds)
}

fn report(machine: &Machine, name: &str, rounds: Vec<f64>) {
    let per_dispatch: Vec<f64> = rounds[1..]
        .iter()
        .map(|s| s * 1e6 / DISPATCHES as f64)
        .collect();
    let least = per_dispatch.iter().copied().fold(f64::INFINITY, f64::min);
    let values = json!({
        "us_per_dispatch": round(median(per_dispatch)),
        "least_us_per_dispatch": round(least),
        "dispatches": DISPATCHES,
        "rounds": ROUNDS,
    });
    machine.print("launch", name, values);
}
