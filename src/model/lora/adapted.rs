//! Sets adapters on a decoder. Checks that they fit it before reading any of their data.

use std::collections::BTreeMap;

use super::{
    adapter::{Adapter, Pair, shown},
    row_order::RowOrder,
    targets::{Target, targets},
};
use crate::{
    Error, Result,
    device::ComputeDevice,
    model::{
        config::ModelConfig,
        layers::{decoder::Decoder, low_rank::LowRank},
        load::RowRepacker,
    },
    ops::matrix::{Layout, Matrix, MatrixShape},
    tensor_types::{BLOCK_COLS, TensorType},
    weights::{ByteSource, JoinedSource, TensorInfo},
};

/// Ranks are padded to a multiple of this, the length of the kernels' vectors.
const RANK_MULTIPLE: usize = 4;

/// The model that adapters are set on.
pub(in crate::model) struct BaseModel<'a> {
    pub(in crate::model) decoder: &'a Decoder,
    pub(in crate::model) config: &'a ModelConfig,
    /// Columns and rows of the matrices of the model's file.
    pub(in crate::model) matrices: &'a BTreeMap<String, [usize; 2]>,
    pub(in crate::model) device: &'a ComputeDevice,
    /// Largest buffer that a kernel can bind.
    pub(in crate::model) max_binding_bytes: u64,
}

/// A decoder with its adapters.
pub(in crate::model) struct Adapted {
    pub(in crate::model) decoder: Decoder,
    /// Whether there are any.
    pub(in crate::model) has_adapters: bool,
}

/// A pair of matrices with everything needed to set it on a model.
struct PlacedPair<'a, S> {
    pair: &'a Pair,
    source: &'a JoinedSource<S>,
    /// Factor of its product: that of the file times that of the caller.
    scale: f32,
    row_order: RowOrder,
}

/// The decoder with exactly these adapters, each multiplied by its scale.
///
/// # Errors
/// [`Error::UnsupportedModel`], [`Error::InvalidModelFile`] and [`Error::OutOfMemory`] naming the file
/// and the tensor or the scale that does not fit, before any data is read; the errors of the sources.
pub(in crate::model) async fn adapted<S: ByteSource>(
    base: &BaseModel<'_>,
    adapters: &[(&Adapter<S>, f32)],
) -> Result<Adapted> {
    let mut decoder = base.decoder.clone();
    let mut targets = targets(&mut decoder, base.matrices);
    let known: BTreeMap<String, bool> = targets
        .iter()
        .flat_map(|target| &target.tensors)
        .map(|tensor| (tensor.name.clone(), tensor.has_recurrent_heads))
        .collect();
    let mut placed: BTreeMap<String, Vec<PlacedPair<S>>> = BTreeMap::new();
    for &(adapter, scale) in adapters {
        if !scale.is_finite() {
            return Err(Error::UnsupportedModel(format!(
                "{}: an adapter multiplied by {scale}",
                adapter.file
            )));
        }
        for pair in &adapter.pairs {
            let name = adapter.target_name(pair, base.config)?;
            match known.get(&name) {
                None => return Err(adapter.not_adaptable(&pair.target)),
                Some(true) => adapter.check_recurrent_heads(&pair.target, base.config)?,
                Some(false) => {}
            }
            base.check(adapter, pair, &name)?;
            if scale != 0.0 {
                placed.entry(name).or_default().push(PlacedPair {
                    pair,
                    source: &adapter.source,
                    scale: scale * pair.scale,
                    row_order: adapter.row_order(base.config)?,
                });
            }
        }
    }
    for target in &targets {
        let bytes =
            4 * target.rows as u64 * rank(target, &placed).next_multiple_of(BLOCK_COLS) as u64;
        if bytes > base.max_binding_bytes {
            return Err(Error::OutOfMemory(format!(
                "the adapters of {} take {bytes} bytes together, and this device's kernels see {} \
                 at most",
                target.tensors[0].name, base.max_binding_bytes
            )));
        }
    }
    let mut has_adapters = false;
    for target in &mut targets {
        let low_rank = low_rank(target, &placed, base.device).await?;
        has_adapters |= low_rank.is_some();
        *target.low_rank = low_rank.map(Box::new);
    }
    Ok(Adapted {
        decoder,
        has_adapters,
    })
}

impl BaseModel<'_> {
    /// Checks that a pair has the shape of the tensor `name`.
    fn check<S>(&self, adapter: &Adapter<S>, pair: &Pair, name: &str) -> Result<()> {
        // A tied model's output matrix is its embeddings.
        let matrix = self.matrices.get(name);
        let matrix = matrix.or_else(|| self.matrices.get("token_embd.weight"));
        let [cols, rows] = *matrix.ok_or_else(|| Error::Internal(format!("no matrix {name}")))?;
        if [pair.cols(), pair.rows()] != [cols as u64, rows as u64] {
            return Err(Error::UnsupportedModel(format!(
                "{}: an adapter of {} to {} elements for the tensor {}, which takes {cols} to {rows}",
                adapter.file,
                pair.cols(),
                pair.rows(),
                shown(&pair.target),
            )));
        }
        Ok(())
    }
}

/// The sum of the ranks of all adapters of a product, padded.
fn rank<S>(target: &Target<'_>, placed: &BTreeMap<String, Vec<PlacedPair<'_, S>>>) -> usize {
    let tensors = target.tensors.iter();
    let pairs = tensors.flat_map(|it| placed.get(&it.name)).flatten();
    let rank = pairs
        .map(|placed| placed.pair.rank() as usize)
        .sum::<usize>();
    rank.next_multiple_of(RANK_MULTIPLE)
}

/// Reads the adapters of a product; `None` if there are none.
async fn low_rank<S: ByteSource>(
    target: &Target<'_>,
    placed: &BTreeMap<String, Vec<PlacedPair<'_, S>>>,
    device: &ComputeDevice,
) -> Result<Option<LowRank>> {
    let all = target.tensors.iter().flat_map(|tensor| {
        let pairs = placed.get(&tensor.name).into_iter().flatten();
        pairs.map(move |placed| (tensor, placed))
    });
    let all: Vec<_> = all.collect();
    let Some((_, first)) = all.first() else {
        return Ok(None);
    };
    let (rows, cols, rank) = (target.rows, target.cols, rank(target, placed));
    // Keeps the type of the files, if it is the same in all and has no blocks.
    let ty = match first.pair.a.ty {
        ty if ty.block_len() == 1 && all.iter().all(|(_, it)| it.pair.a.ty == ty) => ty,
        _ => TensorType::F32,
    };
    let mut down = Vec::new();
    let mut up = vec![0.0; rows * rank];
    let mut column = 0;
    for (tensor, placed) in all {
        let (pair, rank_of_pair) = (placed.pair, placed.pair.rank() as usize);
        match pair.a.ty == ty {
            true => down.extend(placed.bytes(&pair.a).await?),
            false => down.extend(le_bytes(&placed.floats(&pair.a).await?)),
        }
        let mut b = placed.floats(&pair.b).await?;
        if let Some(heads) = tensor.heads {
            b = placed.row_order.apply(b, heads, rank_of_pair);
        }
        // `zip` drops rows beyond the tokenizer's ids, which get no logits.
        let rows = up.chunks_exact_mut(rank).skip(tensor.first_row);
        for (to, from) in rows.zip(b.chunks_exact(rank_of_pair)) {
            let to = &mut to[column..][..rank_of_pair];
            to.iter_mut()
                .zip(from)
                .for_each(|(to, from)| *to = placed.scale * from);
        }
        column += rank_of_pair;
    }
    down.resize(rank * cols * ty.block_bytes(), 0);
    Ok(Some(LowRank {
        down: matrix(ty, &down, [rank, cols], device),
        up: matrix(TensorType::F32, &le_bytes(&up), [rows, rank], device),
    }))
}

impl<S: ByteSource> PlacedPair<'_, S> {
    async fn bytes(&self, tensor: &TensorInfo) -> Result<Vec<u8>> {
        let source = self.source;
        source
            .read_vec(tensor.offset_bytes, tensor.size_bytes)
            .await
    }

    async fn floats(&self, tensor: &TensorInfo) -> Result<Vec<f32>> {
        tensor.read_f32(self.source).await
    }
}

fn le_bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// A matrix of rows in the layout of files.
fn matrix(
    ty: TensorType,
    bytes: &[u8],
    [rows, cols]: [usize; 2],
    device: &ComputeDevice,
) -> Matrix {
    let shape = MatrixShape { ty, rows, cols };
    let layout = Layout::of(device);
    let mut repacker = RowRepacker::new(shape, layout);
    let matrix = Matrix::reserve(shape, layout, device.tensors());
    let matrix = repacker.add(bytes).write(matrix);
    repacker.finish().write(matrix)
}
