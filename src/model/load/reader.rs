//! Reads tensors of a file onto a device, a few MiB at a time: matrices in the layout of the kernels,
//! vectors as f32.
//!
//! Loads wait for uploads. Until the device has taken them, uploads are held in the wasm module, whose memory never
//! shrinks. So the reader waits for the device after every 16 MiB, during the next read.

use std::ops::Range;

use burn::tensor::{Device, Tensor};
use futures_util::future::try_join;

use super::{
    layout::{RowRepacker, matrix_shape},
    tensors::scale_name,
};
use crate::{
    Error, Result,
    device::{ComputeDevice, upload},
    model::layers::layer_input::TokenTable,
    ops::matrix::{Layout, Matrix, MatrixShape},
    tensor_types::TensorType,
    weights::{ByteSource, Gguf, TensorInfo, quoted::quoted},
};

/// Bytes of a tensor read at a time.
const CHUNK_BYTES: usize = 4 << 20;

/// Bytes read before the device is waited for. Until it has taken them, uploads are held in memory: in a page, in that
/// of the wasm module, which never shrinks. More would not make a load faster, because the device works during the next
/// read.
const UNSYNCED_BYTES: u64 = 16 << 20;

/// Reads the tensors of one file.
pub(super) struct TensorReader<'a, S> {
    gguf: &'a Gguf,
    /// `None` for an outline: tensors have their shapes and no data.
    source: Option<&'a S>,
    device: &'a ComputeDevice,
    progress: &'a mut dyn FnMut(u64),
    read_bytes: u64,
    /// The bytes among them that the device is known to have taken.
    synced_bytes: u64,
}

impl<'a, S: ByteSource> TensorReader<'a, S> {
    /// Reads from `source`; without one, tensors are outlines. `progress` is called with the number of tensor
    /// bytes read so far.
    pub(super) fn new(
        gguf: &'a Gguf,
        source: Option<&'a S>,
        device: &'a ComputeDevice,
        progress: &'a mut dyn FnMut(u64),
    ) -> Self {
        Self {
            gguf,
            source,
            device,
            progress,
            read_bytes: 0,
            synced_bytes: 0,
        }
    }

    /// The device of the tensors.
    pub(super) fn device(&self) -> &'a Device {
        self.device.tensors()
    }

    /// A tensor that the file may have.
    pub(super) fn find(&self, name: &str) -> Option<&'a TensorInfo> {
        self.gguf.tensor(name)
    }

    /// A tensor that the file must have.
    pub(super) fn tensor(&self, name: &str) -> Result<&'a TensorInfo> {
        let missing = || Error::InvalidModelFile(format!("tensor {name} is missing"));
        self.find(name).ok_or_else(missing)
    }

    /// All elements of a small matrix as f32, with its factors; zeros in an outline.
    pub(super) async fn elements(&mut self, tensor: &TensorInfo) -> Result<Vec<f32>> {
        let mut values = self.floats(tensor).await?;
        let factors = self.row_factors(tensor, 0..tensor.row_count() as usize);
        let factors = factors.await?;
        let rows = values.chunks_exact_mut(tensor.shape[0] as usize);
        for (row, factor) in rows.zip(factors) {
            row.iter_mut().for_each(|value| *value *= factor);
        }
        Ok(values)
    }

    /// All elements of a small tensor as f32, as they are in the file; zeros in an outline.
    pub(super) async fn floats(&mut self, tensor: &TensorInfo) -> Result<Vec<f32>> {
        let mut bytes = vec![0; tensor.size_bytes as usize];
        if let Some(source) = self.source {
            self.read(source, tensor.offset_bytes, &mut bytes).await?;
        }
        let mut values = vec![0.0; tensor.element_count() as usize];
        tensor.ty.dequantize(&bytes, &mut values);
        Ok(values)
    }

    /// The factors of rows of a tensor whose type has some, as in the tensor beside it: one for all rows or for those of each
    /// expert. Ones without that tensor; empty for other types.
    async fn row_factors(&mut self, tensor: &TensorInfo, rows: Range<usize>) -> Result<Vec<f32>> {
        if !tensor.ty.has_row_factors() {
            return Ok(Vec::new());
        }
        let scales = match self.find(&scale_name(&tensor.name)) {
            Some(scales) => self.floats(scales).await?,
            None => vec![1.0],
        };
        let all_rows = tensor.row_count() as usize;
        if scales.is_empty() || !all_rows.is_multiple_of(scales.len()) {
            let (name, count) = (quoted(&tensor.name), scales.len());
            let what = format!("tensor {name} has {count} factors for {all_rows} rows");
            return Err(Error::InvalidModelFile(what));
        }
        let rows_each = all_rows / scales.len();
        Ok(rows.map(|row| scales[row / rows_each]).collect())
    }

    /// A table that stays on the host; empty in an outline.
    pub(super) async fn token_table(&mut self, name: &str) -> Result<TokenTable> {
        let tensor = self.tensor(name)?;
        let mut bytes = Vec::new();
        if let Some(source) = self.source {
            bytes.resize(tensor.size_bytes as usize, 0);
            for (i, part) in bytes.chunks_mut(CHUNK_BYTES).enumerate() {
                let offset_bytes = tensor.offset_bytes + (i * CHUNK_BYTES) as u64;
                self.read(source, offset_bytes, part).await?;
            }
        }
        let MatrixShape { ty, rows, cols } = matrix_shape(tensor);
        Ok(TokenTable {
            bytes,
            ty,
            rows,
            cols,
        })
    }

    /// A vector on the device.
    pub(super) fn vector(&self, values: Vec<f32>) -> Tensor<1> {
        let len = values.len();
        upload(values, [len], self.device())
    }

    /// All rows of tensors of one type and row length, one tensor below the other.
    pub(super) async fn matrix(&mut self, names: &[&str]) -> Result<Matrix> {
        let mut parts = Vec::new();
        for name in names {
            let tensor = self.tensor(name)?;
            parts.push((tensor, 0..tensor.row_count() as usize));
        }
        self.rows(&parts).await
    }

    /// Some rows of tensors of one type and row length, one tensor below the other.
    pub(super) async fn rows(&mut self, parts: &[(&TensorInfo, Range<usize>)]) -> Result<Matrix> {
        let mut shape = matrix_shape(parts[0].0);
        shape.rows = parts.iter().map(|(_, rows)| rows.len()).sum();
        let Some(source) = self.source else {
            return Ok(Matrix::outline(shape, self.device()));
        };
        let layout = Layout::of(self.device);
        let mut matrix = Matrix::reserve(shape, layout, self.device());
        let mut factors = Vec::new();
        for (tensor, rows) in parts {
            factors.extend(self.row_factors(tensor, rows.clone()).await?);
        }
        let mut repacker = RowRepacker::new(shape, layout).with_factors(factors);
        let mut bytes = Vec::new();
        for (tensor, rows) in parts {
            let row_bytes = tensor.row_bytes() as usize;
            let chunk_rows = (CHUNK_BYTES / row_bytes).max(1);
            for row in rows.clone().step_by(chunk_rows) {
                let count = chunk_rows.min(rows.end - row);
                bytes.resize(count * row_bytes, 0);
                let offset_bytes = tensor.offset_bytes + (row * row_bytes) as u64;
                self.read(source, offset_bytes, &mut bytes).await?;
                matrix = repacker.add(&bytes).write(matrix);
            }
        }
        Ok(repacker.finish().write(matrix))
    }

    /// The first half of a tensor's columns, and the second one. Each is a whole number of blocks.
    pub(super) async fn column_halves(&mut self, name: &str) -> Result<[Matrix; 2]> {
        let tensor = self.tensor(name)?;
        let mut shape = matrix_shape(tensor);
        shape.cols /= 2;
        let Some(source) = self.source else {
            return Ok([(); 2].map(|()| Matrix::outline(shape, self.device())));
        };
        let layout = Layout::of(self.device);
        let factors = self.row_factors(tensor, 0..shape.rows).await?;
        let mut halves = [(); 2].map(|()| {
            let matrix = Matrix::reserve(shape, layout, self.device());
            let repacker = RowRepacker::new(shape, layout).with_factors(factors.clone());
            Some((matrix, repacker))
        });
        let row_bytes = tensor.row_bytes() as usize;
        let chunk_rows = (CHUNK_BYTES / row_bytes).max(1);
        for row in (0..shape.rows).step_by(chunk_rows) {
            let mut bytes = vec![0; chunk_rows.min(shape.rows - row) * row_bytes];
            let offset_bytes = tensor.offset_bytes + (row * row_bytes) as u64;
            self.read(source, offset_bytes, &mut bytes).await?;
            for (half, at) in halves.iter_mut().zip([0, row_bytes / 2]) {
                let rows = bytes.chunks_exact(row_bytes);
                let rows: Vec<u8> = rows
                    .flat_map(|row| &row[at..at + row_bytes / 2])
                    .copied()
                    .collect();
                *half = half.take().map(|(matrix, mut repacker)| {
                    let words = repacker.add(&rows);
                    (words.write(matrix), repacker)
                });
            }
        }
        Ok(halves.map(|half| {
            let (matrix, repacker) = half.expect("it is put back");
            repacker.finish().write(matrix)
        }))
    }

    /// A matrix whose columns are the rows of a tensor of floats; f32 for other types, whose blocks are of rows.
    pub(super) async fn transposed(&mut self, name: &str) -> Result<Matrix> {
        let tensor = self.tensor(name)?;
        let from = matrix_shape(tensor);
        let shape = MatrixShape {
            ty: match tensor.ty {
                TensorType::F32 | TensorType::F16 | TensorType::BF16 => tensor.ty,
                _ => TensorType::F32,
            },
            rows: from.cols,
            cols: from.rows,
        };
        if self.source.is_none() {
            return Ok(Matrix::outline(shape, self.device()));
        }
        let values = self.elements(tensor).await?;
        let mut columns = Vec::with_capacity(values.len());
        for column in 0..from.cols {
            columns.extend(values.iter().skip(column).step_by(from.cols));
        }
        let layout = Layout::of(self.device);
        let mut repacker = RowRepacker::new(shape, layout);
        let matrix = Matrix::reserve(shape, layout, self.device());
        let matrix = repacker.add(&shape.ty.quantize(&columns)).write(matrix);
        Ok(repacker.finish().write(matrix))
    }

    async fn read(&mut self, source: &S, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        let len_bytes = buf.len() as u64;
        let read = source.read_at(offset_bytes, buf);
        if self.read_bytes - self.synced_bytes < UNSYNCED_BYTES {
            read.await?;
        } else {
            try_join(read, self.device.sync()).await?;
            self.synced_bytes = self.read_bytes;
        }
        self.read_bytes += len_bytes;
        (self.progress)(self.read_bytes);
        Ok(())
    }
}
