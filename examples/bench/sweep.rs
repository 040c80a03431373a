//! The time of a matvec by the form of its kernel: quarters of blocks, lanes that share a row, rows that a group of lanes
//! computes, lanes of a workgroup. Shows what a device needs: one with many processors is idle where few groups compute many
//! rows each.

use std::time::{Duration, Instant};

use burn::tensor::Tensor;
use inpage::{
    device::Graph,
    ops::{
        Addends, Finish, Variant,
        matrix::{Matrix, MatrixShape},
        product::matvec,
    },
    tensor_types::TensorType,
};
use serde_json::json;

use crate::{
    Outcome,
    kernels::{matrices, ones, onto},
    machine::{Machine, round},
    timing::{median, repeats},
};

const TYPES: [TensorType; 5] = [
    TensorType::Q4_0,
    TensorType::Q4_K,
    TensorType::Q6_K,
    TensorType::Q8_0,
    TensorType::F16,
];
/// Rows and columns. The first is a dispatch without work; the last is the output of a model with a large vocabulary.
const SHAPES: [[usize; 2]; 5] = [
    [64, 256],
    [2048, 2048],
    [4096, 4096],
    [2048, 8192],
    [65536, 2048],
];
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(8);
/// A device that was idle needs this long to raise its clock, which changes times by a factor of three.
const WARM_UP: Duration = Duration::from_millis(400);

/// Measures every form in every shape. Prints the time of a launch that depends on the one before it.
pub async fn run(machine: &Machine) -> Outcome<()> {
    let Some(gpu) = machine.gpu() else {
        return Err("sweep measures kernels of a GPU".into());
    };
    for ty in TYPES {
        for [rows, cols] in SHAPES {
            let shape = MatrixShape { ty, rows, cols };
            let matrices = matrices(machine, shape);
            let (x, start) = (ones(machine, 1, cols), ones(machine, 1, rows));
            let mut graphs = Vec::new();
            for variant in forms(machine.variant) {
                let pass = || {
                    let next = |sum, matrix: &Matrix| {
                        let addends: Addends = onto(sum);
                        matvec(x.clone(), None, matrix, addends, Finish::Plain, variant)
                    };
                    matrices.iter().fold(start.clone(), next)
                };
                graphs.push((variant, Graph::record(gpu, pass).await?));
            }
            let replays = async |graph: &Graph<Tensor<2>>, count: usize| -> Outcome<Duration> {
                let begun = Instant::now();
                for _ in 0..count {
                    // SAFETY: what the recorded pass borrows outlives the graphs; there is only this thread.
                    unsafe { graph.replay(gpu)? };
                }
                machine.device.sync().await?;
                Ok(begun.elapsed())
            };
            let begun = Instant::now();
            while begun.elapsed() < WARM_UP {
                for (_, graph) in &graphs {
                    replays(graph, 1).await?;
                }
            }
            for (variant, graph) in &graphs {
                let count = repeats(replays(graph, 1).await?, ROUND);
                let mut rounds = Vec::new();
                for _ in 0..ROUNDS {
                    let taken = replays(graph, count).await?.as_secs_f64();
                    rounds.push(taken / (count * matrices.len()) as f64);
                }
                let taken = median(rounds);
                let values = json!({
                    "shape": format!("{rows}x{cols}"),
                    "quarters": variant.quarters,
                    "lanes": variant.lanes_per_row,
                    "rows": variant.rows_per_group,
                    "workgroup": variant.workgroup,
                    "subgroups": variant.subgroups,
                    "us_per_launch": round(taken * 1e6),
                    "gb_per_s": round(shape.read_bytes() as f64 / taken / 1e9),
                });
                let name = format!("matvec_{}", ty.lowercase_name());
                machine.print("sweep", &name, values);
            }
        }
    }
    Ok(())
}

/// The chosen variant with other numbers of lanes and rows.
fn forms(chosen: Variant) -> Vec<Variant> {
    let whole = Variant {
        quarters: false,
        ..chosen
    };
    let mut forms = vec![chosen, whole];
    for lanes_per_row in [8, 16, 32, 64, 128] {
        // More lanes than a subgroup has reduce in workgroup memory.
        let subgroups = chosen.subgroups && lanes_per_row <= chosen.lanes_per_row;
        for rows_per_group in [1, 2, 4] {
            for workgroup in [64, 128, 256] {
                let (form, is_small) = (Variant::PORTABLE, workgroup < lanes_per_row);
                if is_small || (workgroup == 256 && rows_per_group > 1) {
                    continue;
                }
                forms.push(Variant {
                    subgroups,
                    lanes_per_row,
                    rows_per_group,
                    workgroup,
                    ..form
                });
            }
        }
    }
    forms
}
