//! The matrix products of a decoder that adapters can add to, and the tensors that their matrices consist
//! of.

use std::collections::BTreeMap;

use crate::model::layers::{
    attention::{Attention, Qkv},
    decoder::Decoder,
    feed_forward::FeedForward,
    linear::Linear,
    low_rank::LowRank,
    recurrent::Recurrent,
};

/// GGUF name of the matrix that computes logits.
const OUTPUT: &str = "output.weight";

/// A matrix product.
pub(super) struct Target<'a> {
    /// The tensors whose rows its matrix consists of.
    pub(super) tensors: Vec<TargetTensor>,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// The adapters that are added to it.
    pub(super) low_rank: &'a mut Option<Box<LowRank>>,
}

/// A tensor in the matrix of a product.
pub(super) struct TargetTensor {
    /// GGUF name.
    pub(super) name: String,
    /// Its first row in the matrix.
    pub(super) first_row: usize,
    /// Number of heads of its rows, if these are only queries or only keys.
    pub(super) heads: Option<usize>,
    /// Whether some of its rows or columns are heads of values of a recurrence, whose order in files may not be that of checkpoints.
    pub(super) has_recurrent_heads: bool,
}

impl TargetTensor {
    fn with_heads(self, heads: usize) -> TargetTensor {
        TargetTensor {
            heads: Some(heads),
            ..self
        }
    }
}

/// All targets of a model whose file holds these `matrices`.
pub(super) fn targets<'a>(
    decoder: &'a mut Decoder,
    matrices: &BTreeMap<String, [usize; 2]>,
) -> Vec<Target<'a>> {
    let mut targets = Vec::new();
    for block in &mut decoder.blocks {
        let layer = block.file_layer;
        let names = LayerNames { layer, matrices };
        let (attention, recurrent) = block.mixer.parts_mut();
        if let Some(attention) = attention {
            attention_targets(attention, &names, &mut targets);
        }
        if let Some(recurrent) = recurrent {
            recurrent_targets(recurrent, &names, &mut targets);
        }
        feed_forward_targets(&mut block.feed_forward, &names, &mut targets);
    }
    let output = TargetTensor {
        name: OUTPUT.into(),
        first_row: 0,
        heads: None,
        has_recurrent_heads: false,
    };
    targets.push(Target::new(&mut decoder.output, vec![output]));
    targets
}

/// The tensors of a layer.
struct LayerNames<'a> {
    layer: usize,
    matrices: &'a BTreeMap<String, [usize; 2]>,
}

impl LayerNames<'_> {
    fn tensor(&self, part: &str, first_row: usize) -> TargetTensor {
        TargetTensor {
            name: format!("blk.{}.{part}.weight", self.layer),
            first_row,
            heads: None,
            has_recurrent_heads: false,
        }
    }

    /// A tensor of the file, if it holds one of this name.
    fn find(&self, part: &str) -> Option<TargetTensor> {
        let tensor = self.tensor(part, 0);
        self.matrices.contains_key(&tensor.name).then_some(tensor)
    }
}

fn attention_targets<'a>(
    attention: &'a mut Attention,
    names: &LayerNames,
    targets: &mut Vec<Target<'a>>,
) {
    let shape = attention.shape;
    let (q_dim, kv_dim) = (shape.q_dim(), shape.kv_dim());
    let q = names.tensor("attn_q", 0).with_heads(shape.heads);
    let k = |first_row| names.tensor("attn_k", first_row).with_heads(shape.kv_heads);
    let v = |first_row| names.tensor("attn_v", first_row);
    // The file's matrix of queries holds the rows of the output gates between theirs, so an adapter's rows have no place.
    let takes_queries = attention.gate.is_none();
    let placed = |tensors: Vec<TargetTensor>| {
        let is_placed =
            |it: &TargetTensor| takes_queries || it.name != names.tensor("attn_q", 0).name;
        tensors.into_iter().filter(is_placed).collect::<Vec<_>>()
    };
    match &mut attention.attn_qkv {
        Qkv::Fused(linear) => {
            let rows = linear.weight.shape.rows;
            let tensors = match names.find("attn_qkv") {
                Some(fused) => vec![fused],
                None if rows == q_dim => vec![q],
                None if rows < q_dim + 2 * kv_dim => vec![q, k(q_dim)],
                None => vec![q, k(q_dim), v(q_dim + kv_dim)],
            };
            targets.push(Target::new(linear, placed(tensors)));
        }
        // Their rows are not those of the file.
        Qkv::Latent(_) => {}
        Qkv::Split(linears) => {
            for (linear, tensor) in linears.iter_mut().zip([q, k(0), v(0)]) {
                let tensors = placed(vec![tensor]);
                if !tensors.is_empty() {
                    targets.push(Target::new(linear, tensors));
                }
            }
        }
    }
    let output = vec![names.tensor("attn_output", 0)];
    targets.push(Target::new(&mut attention.attn_output, output));
}

fn recurrent_targets<'a>(
    recurrent: &'a mut Recurrent,
    names: &LayerNames,
    targets: &mut Vec<Target<'a>>,
) {
    let has_recurrent_heads = recurrent.scan.is_some();
    let tensor = |part: &str, first_row| TargetTensor {
        has_recurrent_heads,
        ..names.tensor(part, first_row)
    };
    let projections = &mut recurrent.projections;
    for (matrix, linear) in projections.linears.iter_mut().enumerate() {
        let parts = projections.names.iter().zip(&projections.places);
        let own = parts.filter(|(_, place)| place.matrix == matrix);
        let tensors: Vec<_> = own.map(|(part, place)| tensor(part, place.at)).collect();
        if !tensors.is_empty() {
            targets.push(Target::new(linear, tensors));
        }
    }
    let output = vec![tensor(recurrent.output_name, 0)];
    targets.push(Target::new(&mut recurrent.output, output));
}

fn feed_forward_targets<'a>(
    feed_forward: &'a mut FeedForward,
    names: &LayerNames,
    targets: &mut Vec<Target<'a>>,
) {
    let down = vec![names.tensor("ffn_down", 0)];
    let gated = match feed_forward {
        FeedForward::Gated(layer) => layer,
        FeedForward::Mixed(layer) => &mut layer.dense,
        FeedForward::Plain(layer) => {
            let up = vec![names.tensor("ffn_up", 0)];
            targets.push(Target::new(&mut layer.ffn_up, up));
            targets.push(Target::new(&mut layer.ffn_down, down));
            return;
        }
        // The kernels of experts have no place for adapters.
        FeedForward::Experts(_) | FeedForward::Shared(_) => return,
    };
    let shape = gated.ffn_gate.shape;
    targets.push(Target {
        tensors: match names.find("ffn_gate") {
            Some(gate) => vec![gate, names.tensor("ffn_up", shape.rows)],
            // One tensor holds the rows of both.
            None => vec![names.tensor("ffn_up", 0)],
        },
        rows: 2 * shape.rows,
        cols: shape.cols,
        low_rank: &mut gated.low_rank,
    });
    targets.push(Target::new(&mut gated.ffn_down, down));
}

impl<'a> Target<'a> {
    fn new(linear: &'a mut Linear, tensors: Vec<TargetTensor>) -> Target<'a> {
        Target {
            tensors,
            rows: linear.weight.shape.rows,
            cols: linear.weight.shape.cols,
            low_rank: &mut linear.low_rank,
        }
    }
}
