//! Rows of a (quantized) table by token id, or rows that are given, such as those of an image: for an id below the
//! table's number of rows `out[token] = scale * table[id]`, for others `given[id - rows]`.

use super::{
    embedding,
    in_place::InPlace,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::*,
};
use crate::kernel::{Kernel, grid, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) ids: IntTensor<B>,
    #[extension_type]
    pub(super) table: MatrixTensors<B>,
    pub(super) given: IntTensor<B>,
    pub(super) scale: f32,
}

op! {
    fn embedding_or_row(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// For each of `ids` `[tokens]` the row of `table` times `scale`, or of `given` `[rows, cols]`, which holds floats as
/// words: `[tokens, cols]`.
pub fn embedding_or_row(
    ids: Tensor<1, Int>,
    table: &Matrix,
    given: &InPlace,
    scale: f32,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::embedding_or_row(Arguments {
        ids: ids.into_dispatch(),
        table: table.to_dispatch(),
        given: given.get().into_dispatch(),
        scale,
    }))
}

/// The composed kernel, for `given_rows` given rows.
pub fn kernel(table: MatrixShape, given_rows: usize, scale: f32) -> Kernel {
    let kernel = Kernel::new(format!("embedding_or_row_{}", table.ty.lowercase_name()))
        .binding("ids")
        .binding("given")
        .binding("out");
    table
        .constants(table.bindings(kernel, "weights"))
        .constant("GIVEN_ROWS", given_rows)
        .constant_f32("SCALE", scale)
        .constant("WORKGROUP", WORKGROUP)
        .modules(table.ty.wgsl())
        .module(wgsl!("embedding_or_row"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let tokens = args.ids.shape().num_elements();
    let shape = args.table.shape;
    let out = output(&args.ids, [tokens, shape.cols]);
    let mut buffers = vec![&args.ids, &args.given, &out];
    buffers.extend(args.table.buffers());
    let workgroups = (tokens * shape.row_blocks()).div_ceil(WORKGROUP);
    let given_rows = args.given.shape().num_elements() / shape.cols;
    kernel(shape, given_rows, args.scale).launch(&buffers, grid(workgroups));
    out
}

/// Also the function of the CPU device: a copy of rows.
pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { ids, given, .. } = args;
    let (rows, cols) = (args.table.shape.rows, args.table.shape.cols);
    let is_panels = args.table.is_panels();
    let embedded = embedding::Arguments {
        ids: ids.clone(),
        table: args.table,
        scale: args.scale,
    };
    let of_table = match is_panels {
        true => embedding::cpu(embedded),
        false => embedding::twin(embedded),
    };
    let given = given.storage::<u32>();
    let mut out = of_table.storage::<f32>().to_vec();
    let ids = ids.storage::<u32>();
    for (&id, out) in ids.iter().zip(out.chunks_exact_mut(cols)) {
        let Some(index) = (id as usize).checked_sub(rows) else {
            continue;
        };
        let index = index.min(given.len() / cols - 1);
        let row = &given[index * cols..(index + 1) * cols];
        out.iter_mut()
            .zip(row)
            .for_each(|(out, word)| *out = f32::from_bits(*word));
    }
    twin_output(out, [ids.len(), cols])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        let shapes = matrices().into_iter().map(|(shape, _)| shape);
        assert_valid(shapes.map(|shape| kernel(shape, 7, 1.0)));
    }
}
