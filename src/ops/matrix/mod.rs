//! Weight matrices on a device. GPUs and the reference read the layout of [`TensorType::repack`]: blocks of 32 columns,
//! quants and scales in separate buffers. The CPU device reads panels of eight rows.

use burn::{
    backend::{Backend, Cube, Dispatch, ExtensionType, tensor::IntTensor},
    tensor::{Device, Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::write_words::write_words;
use crate::{
    device::ComputeDevice,
    device::reserve_words,
    kernel::Kernel,
    tensor_types::{BLOCK_COLS, PANEL_ROWS, ScaleWord, TensorType},
};

/// Type and size of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixShape {
    /// Encoding of the elements.
    pub ty: TensorType,
    /// Number of outputs.
    pub rows: usize,
    /// Number of inputs; a multiple of 4. Rows are padded with zeros to whole blocks.
    pub cols: usize,
}

impl MatrixShape {
    /// Blocks of one row.
    pub fn row_blocks(self) -> usize {
        self.cols.div_ceil(BLOCK_COLS)
    }

    /// Words of the quants buffer.
    pub fn quant_words(self) -> usize {
        self.rows * self.row_blocks() * self.ty.kernel_block_words()
    }

    /// Words of the scales buffer; at least one, because a buffer cannot be empty.
    pub fn scale_words(self) -> usize {
        if self.ty.has_row_factors() {
            return self.rows * self.row_scale_words();
        }
        let (bytes, blocks) = self.ty.scale_bytes();
        let bytes = (self.rows * self.row_blocks()).div_ceil(blocks) * bytes;
        bytes.div_ceil(4).max(1)
    }

    /// Words of the scales of a row that begin with its factor.
    fn row_scale_words(self) -> usize {
        let (bytes, blocks) = self.ty.scale_bytes();
        1 + self.row_blocks() / blocks * bytes / 4
    }

    /// The content of word `at` of the scales buffer.
    ///
    /// # Panics
    /// If the type has no scales.
    pub fn scale_word(self, at: usize) -> ScaleWord {
        if !self.ty.has_row_factors() {
            return self.ty.scale_word(at);
        }
        match at % self.row_scale_words() {
            0 => ScaleWord::Factor,
            within => self.ty.scale_word(within - 1),
        }
    }

    /// The elements of a block of [`Layout::Blocks`]; those of a row follow each other.
    pub fn decode_block(self, quants: &[u32], scales: &[u32], block: usize) -> [f32; BLOCK_COLS] {
        if !self.ty.has_row_factors() {
            return self.ty.decode_kernel_block(quants, scales, block);
        }
        let blocks = self.row_blocks();
        let row = block / blocks;
        let quants = &quants[row * blocks * self.ty.kernel_block_words()..];
        let words = self.row_scale_words();
        let (factor, scales) = scales[row * words..][..words].split_at(1);
        let values = self.ty.decode_kernel_block(quants, scales, block % blocks);
        values.map(|value| value * f32::from_bits(factor[0]))
    }

    /// Words of all panels. The last panel is padded with rows of zeros.
    pub fn panel_words(self) -> usize {
        let panels = self.rows.div_ceil(PANEL_ROWS);
        panels * self.ty.panel_bytes(self.cols) / 4
    }

    /// Bytes that one pass over the matrix reads.
    pub fn read_bytes(self) -> usize {
        let scales = if self.ty.has_scales() {
            self.scale_words()
        } else {
            0
        };
        4 * (self.quant_words() + scales)
    }
}

/// Order of the elements of a matrix on a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// Blocks of 32 columns, row after row: what GPUs and the twins read.
    #[default]
    Blocks,
    /// Panels of eight rows, quants and scales together: what the kernels of the CPU device read.
    Panels,
}

impl Layout {
    /// The layout that the ops of a device read.
    pub fn of(device: &ComputeDevice) -> Layout {
        match device.is_cpu() {
            true => Layout::Panels,
            false => Layout::Blocks,
        }
    }

    /// Words of the quants and of the scales of a matrix.
    fn words(self, shape: MatrixShape) -> [usize; 2] {
        match self {
            Layout::Blocks => [shape.quant_words(), shape.scale_words()],
            Layout::Panels if shape.ty.has_row_factors() => [shape.panel_words(), shape.rows],
            Layout::Panels => [shape.panel_words(), 1],
        }
    }
}

/// A weight matrix `[rows, cols]` on a device.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// Quant words, row after row; or the words of all panels.
    pub quants: Tensor<1, Int>,
    /// Scale words (a single unused word for types without scales). Of panels the factors of the rows, or an unused word.
    pub scales: Tensor<1, Int>,
    /// Type and size.
    pub shape: MatrixShape,
    /// Order of the elements.
    pub layout: Layout,
}

impl Matrix {
    /// Allocates the memory of a matrix. [`Matrix::write`] fills it.
    pub fn reserve(shape: MatrixShape, layout: Layout, device: &Device) -> Self {
        let words = layout.words(shape);
        let [quants, scales] = words.map(|n| reserve_words(n, device));
        Self {
            quants,
            scales,
            shape,
            layout,
        }
    }

    /// A matrix without memory: enough to tell which kernels it takes.
    pub fn outline(shape: MatrixShape, device: &Device) -> Self {
        let word = || reserve_words(1, device);
        Self {
            quants: word(),
            scales: word(),
            shape,
            layout: Layout::Blocks,
        }
    }

    /// Overwrites quant words from `quants_at` on and scale words from `scales_at` on.
    pub fn write(
        mut self,
        quants_at: usize,
        quants: Vec<u32>,
        scales_at: usize,
        scales: Vec<u32>,
    ) -> Self {
        if !quants.is_empty() {
            self.quants = write_words(self.quants, quants_at, quants);
        }
        if !scales.is_empty() {
            self.scales = write_words(self.scales, scales_at, scales);
        }
        self
    }
}

/// The buffers of a weight matrix on a backend.
#[derive(ExtensionType)]
pub(super) struct MatrixTensors<B: Backend> {
    /// Quant words.
    pub(super) quants: IntTensor<B>,
    /// Scale words.
    pub(super) scales: IntTensor<B>,
    /// Type and size.
    pub(super) shape: MatrixShape,
    /// Order of the elements.
    pub(super) layout: Layout,
}

impl Matrix {
    pub(super) fn to_dispatch(&self) -> MatrixTensors<Dispatch> {
        MatrixTensors {
            quants: self.quants.clone().into_dispatch(),
            scales: self.scales.clone().into_dispatch(),
            shape: self.shape,
            layout: self.layout,
        }
    }
}

impl MatrixTensors<Cube> {
    /// The buffers for [`MatrixShape::bindings`].
    pub(super) fn buffers(&self) -> impl Iterator<Item = &CubeTensor> {
        let scales = self.shape.ty.has_scales().then_some(&self.scales);
        std::iter::once(&self.quants).chain(scales)
    }
}

impl MatrixShape {
    /// Declares the bindings of a matrix called `name`: its quants and, where the type has them, its
    /// scales.
    pub(super) fn bindings(self, kernel: Kernel, name: &str) -> Kernel {
        let kernel = kernel.binding(&format!("{name}_quants"));
        match self.ty.has_scales() {
            true => kernel.binding(&format!("{name}_scales")),
            false => kernel,
        }
    }

    /// Declares the constants of the size.
    pub(super) fn constants(self, kernel: Kernel) -> Kernel {
        kernel
            .constant("ROWS", self.rows)
            .constant("COLS", self.cols)
            .constant("BLOCKS", self.row_blocks())
    }

    /// The size of one expert's matrix, of those that are stored one below the other.
    pub(super) fn of_expert(self, rows: usize) -> MatrixShape {
        MatrixShape { rows, ..self }
    }
}
