//! Adds given rows, such as values of an image for the output of a layer, to the tokens that stand for them: for an id
//! below the embedding table's number of rows `out[token] = x[token]`, for others `x[token] + given[first + id - rows]`.

use super::{in_place::InPlace, op::*};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) ids: IntTensor<B>,
    pub(super) given: IntTensor<B>,
    pub(super) rows: GivenRows,
}

op! {
    fn add_given(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// The rows that are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenRows {
    /// Rows of the embedding table; larger ids are given.
    pub table_rows: usize,
    /// The given row of the first such id.
    pub first: usize,
}

/// `x` `[tokens, cols]`, plus the rows of `given` `[rows, cols]`, which holds floats as words, for those of `ids`
/// `[tokens]` that are beyond the embedding table.
pub fn add_given(x: Tensor<2>, ids: Tensor<1, Int>, given: &InPlace, rows: GivenRows) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::add_given(Arguments {
        x: x.into_dispatch(),
        ids: ids.into_dispatch(),
        given: given.get().into_dispatch(),
        rows,
    }))
}

/// The composed kernel, for `given_rows` given rows of `cols` columns.
pub fn kernel(cols: usize, given_rows: usize, rows: GivenRows) -> Kernel {
    Kernel::new("add_given")
        .binding("x")
        .binding("ids")
        .binding("given")
        .binding("out")
        .constant("COLS", cols)
        .constant("ROWS", rows.table_rows)
        .constant("FIRST", rows.first)
        .constant("GIVEN_ROWS", given_rows)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("add_given"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, cols] = args.x.shape().dims();
    let out = output(&args.x, [tokens, cols]);
    let given_rows = args.given.shape().num_elements() / cols;
    let workgroups = (cols / 4).div_ceil(WORKGROUP) as u32;
    let grid = [workgroups, tokens as u32, 1];
    kernel(cols, given_rows, args.rows).launch(&[&args.x, &args.ids, &args.given, &out], grid);
    out
}

/// Also the function of the CPU device.
pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { ids, given, .. } = args;
    let [tokens, cols] = args.x.shape().dims();
    let given = given.storage::<u32>();
    let mut out = args.x.storage::<f32>().to_vec();
    let ids = ids.storage::<u32>();
    for (&id, out) in ids.iter().zip(out.chunks_exact_mut(cols)) {
        let Some(index) = (id as usize).checked_sub(args.rows.table_rows) else {
            continue;
        };
        let index = (args.rows.first + index).min(given.len() / cols - 1);
        let row = &given[index * cols..(index + 1) * cols];
        out.iter_mut()
            .zip(row)
            .for_each(|(out, word)| *out += f32::from_bits(*word));
    }
    twin_output(out, [tokens, cols])
}

#[cfg(test)]
mod tests {
    use super::{GivenRows, kernel};
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        let rows = GivenRows {
            table_rows: 320,
            first: 7,
        };
        assert_valid([4, 36, 384].map(|cols| kernel(cols, 14, rows)));
    }
}
