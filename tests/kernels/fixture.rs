//! Random inputs on both devices, and the comparison.

use burn::tensor::{Device, Int, Tensor};
use inpage::{
    device::{Gpu, read, upload, upload_words},
    ops::{
        Arithmetic, Variant,
        kv_memory::KvFormat,
        matrix::{Layout, Matrix, MatrixShape},
        step::Segment,
    },
    tensor_types::{ScaleWord, TensorType},
};
use pollster::block_on;

pub use crate::shared_gpus::{gpu, new_gpu};

/// Deterministic values in [-1, 1).
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 40) as f32) / (1u64 << 23) as f32 - 1.0
    }

    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.next()).collect()
    }
}

pub fn variants(gpu: &Gpu) -> Vec<Variant> {
    let mut variants = vec![Variant::PORTABLE];
    variants.push(Variant {
        lanes_per_row: 32,
        rows_per_group: 4,
        workgroup: 128,
        ..Variant::PORTABLE
    });
    if gpu.report().subgroups {
        let lanes_per_row = gpu.report().subgroup_min_lanes.min(32);
        variants.push(Variant {
            subgroups: true,
            lanes_per_row,
            quarters: true,
            ..Variant::PORTABLE
        });
        for (rows_per_group, workgroup, barrier_free) in [
            (1, 64, false),
            (4, 64, false),
            (16, lanes_per_row.max(16), true),
        ] {
            variants.push(Variant {
                subgroups: true,
                lanes_per_row,
                rows_per_group,
                workgroup,
                barrier_free,
                ..Variant::PORTABLE
            });
        }
    }
    variants.push(Variant {
        matvec: Arithmetic::I8,
        rows_per_group: 4,
        ..Variant::PORTABLE
    });
    variants
}

/// A variant and a tensor type, with the sizes (rows, columns) at which they are tested.
pub type MatmulCase = (Variant, TensorType, Vec<(usize, usize)>);

/// Every form of matmul that the device supports, with formats that differ in it, and sizes.
pub fn matmuls(gpu: &Gpu) -> Vec<MatmulCase> {
    let tilings = tilings(gpu);
    let each = |format| {
        let variants = variants_with_sizes(format, &tilings).into_iter();
        variants.map(move |(variant, sizes)| (variant, format, sizes))
    };
    let mut cases: Vec<_> = TensorType::ALL.iter().copied().flat_map(each).collect();
    let in_arithmetic = |matmul| Variant {
        matmul,
        ..Variant::PORTABLE
    };
    let mut add = |matmul, formats: &[TensorType]| {
        let variant = in_arithmetic(matmul);
        cases.extend(
            formats
                .iter()
                .map(|&format| (variant, format, sizes(format))),
        );
    };
    add(
        Arithmetic::I8,
        &[TensorType::Q8_0, TensorType::Q4_0, TensorType::F16],
    );
    if gpu.report().shader_f16 {
        add(
            Arithmetic::F16,
            &[TensorType::F32, TensorType::Q4_0, TensorType::Q6_K],
        );
    }
    cases
}

/// A variant whose matmul and attention use workgroup memory, and one whose do not.
pub fn tilings(gpu: &Gpu) -> Vec<Variant> {
    let mut variants = variants(gpu);
    variants.retain(|variant| variant.matvec == Arithmetic::F32);
    variants.reverse();
    variants.dedup_by_key(|variant| variant.barrier_free);
    variants
}

pub fn tensor<const D: usize>(values: &[f32], shape: [usize; D], device: &Device) -> Tensor<D> {
    upload(values.to_vec(), shape, device)
}

pub fn ids(values: &[u32], device: &Device) -> Tensor<1, Int> {
    upload_words(values.to_vec(), [values.len()], device)
}

pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    block_on(read(tensor.into_dispatch())).expect("readable")
}

pub fn words<const D: usize>(tensor: Tensor<D, Int>) -> Vec<u32> {
    block_on(read(tensor.into_dispatch())).expect("readable")
}

pub fn segment(position: usize, tokens: usize, pages: &[u32]) -> Segment<'_> {
    Segment {
        position,
        tokens,
        pages,
        state: 0,
        is_seen_whole: false,
        rotary: Default::default(),
    }
}

/// A matrix of random words with moderate scales and values, the same on both devices.
pub fn matrices(
    format: TensorType,
    rows: usize,
    cols: usize,
    noise: &mut Noise,
    devices: [&Device; 2],
) -> [Matrix; 2] {
    let shape = MatrixShape {
        ty: format,
        rows,
        cols,
    };
    let half_word = |a: f32, b: f32, bf: bool| {
        let bits = |v: f32| {
            if bf {
                half::bf16::from_f32(v).to_bits()
            } else {
                half::f16::from_f32(v).to_bits()
            }
        };
        u32::from(bits(a)) | u32::from(bits(b)) << 16
    };
    let row_words = shape.row_blocks() * format.kernel_block_words();
    let quants: Vec<u32> = (0..shape.quant_words())
        .map(|i| {
            let element = i % row_words * (32 / format.kernel_block_words());
            let mut value = || if element < cols { noise.next() } else { 0.0 };
            match format {
                TensorType::F32 => value().to_bits(),
                TensorType::F16 => half_word(value(), value(), false),
                TensorType::BF16 => half_word(value(), value(), true),
                _ => (noise.next() * 2e9) as i32 as u32,
            }
        })
        .collect();
    // With the largest quants and sub-scales, weights are near one.
    let scale = match format {
        TensorType::Q8_0 | TensorType::IQ4_NL => 1.0 / 127.0,
        TensorType::Q2_K => 1.0 / 16.0,
        TensorType::Q3_K => 1.0 / 64.0,
        TensorType::Q4_K | TensorType::Q5_K => 1.0 / 512.0,
        TensorType::Q6_K | TensorType::IQ4_XS => 1.0 / 2048.0,
        TensorType::IQ1_S | TensorType::IQ1_M => 1.0 / 32.0,
        TensorType::IQ2_XXS | TensorType::IQ2_XS | TensorType::IQ2_S => 1.0 / 256.0,
        TensorType::IQ3_XXS | TensorType::IQ3_S => 1.0 / 512.0,
        _ => 0.125,
    };
    let scales: Vec<u32> = if format.has_scales() {
        (0..shape.scale_words())
            .map(|i| {
                let bits = (noise.next() * 2e9) as i32 as u32;
                let halves = half_word(noise.next() * scale, noise.next() * scale, false);
                match shape.scale_word(i) {
                    ScaleWord::Halves => halves,
                    ScaleWord::LowerHalf => bits & 0xffff_0000 | halves & 0xffff,
                    ScaleWord::UpperHalf => bits & 0xffff | halves & 0xffff_0000,
                    ScaleWord::Bits => bits,
                    // 2^-7 to 2^0
                    ScaleWord::Exponents => bits & 0x0707_0707 | 0x7878_7878,
                    // Up to 15/128.
                    ScaleWord::SmallFloats => bits & 0x1f1f_1f1f,
                    ScaleWord::Factor => (noise.next() + 1.5).to_bits(),
                }
            })
            .collect()
    } else {
        Vec::new()
    };
    devices.map(|device| {
        Matrix::reserve(shape, Layout::Blocks, device).write(0, quants.clone(), 0, scales.clone())
    })
}

/// The tolerance of results of attention. Devices may round keys and values to either side.
pub fn tolerance(format: KvFormat) -> f32 {
    format.tolerance() / 5.0
}

pub fn assert_close(what: &str, gpu: &[f32], cpu: &[f32], tolerance: f32) {
    assert_eq!(gpu.len(), cpu.len(), "{what}");
    assert!(
        cpu.iter().any(|v| *v != 0.0),
        "{what}: the twin is all zeros"
    );
    for (i, (a, b)) in gpu.iter().zip(cpu).enumerate() {
        assert!(
            (a - b).abs() <= tolerance * (1.0 + b.abs()),
            "{what}[{i}]: {a} on the GPU, {b} on the CPU"
        );
    }
}

/// Like [`assert_close`] for f32. For other arithmetic, the difference must be within a hundredth of the
/// typical output. f16 keeps 11 bits of each of 32 sums, and the twins keep all. The twins quantize inputs
/// as the kernels do, but a value between two bytes may be rounded either way (a byte is 0.008 of the
/// largest input of a block).
pub fn assert_near(what: &str, gpu: &[f32], cpu: &[f32], arithmetic: Arithmetic, tolerance: f32) {
    if arithmetic == Arithmetic::F32 {
        return assert_close(what, gpu, cpu, tolerance);
    }
    assert_eq!(gpu.len(), cpu.len(), "{what}");
    let mean_square = cpu.iter().map(|v| v * v).sum::<f32>() / cpu.len() as f32;
    assert!(mean_square > 0.0, "{what}: the twin is all zeros");
    for (i, (a, b)) in gpu.iter().zip(cpu).enumerate() {
        assert!(
            (a - b).abs() <= 1e-2 * (mean_square.sqrt() + b.abs()),
            "{what}[{i}]: {a} on the GPU, {b} on the CPU"
        );
    }
}

/// Rows and columns that fill no tile, no workgroup and, if unquantized, no block. There are four sizes for
/// representative formats and one for formats that differ little from them, because pipelines take time
/// to compile.
pub fn sizes(format: TensorType) -> Vec<(usize, usize)> {
    let mut sizes: Vec<(usize, usize)> = match is_thorough(format) {
        true => vec![(1, 32), (37, 96), (130, 1056), (37, 172)],
        false => vec![(37, 96)],
    };
    for (_, cols) in &mut sizes {
        *cols = cols.next_multiple_of(format.row_multiple());
    }
    sizes
}

/// Whether a format is tested with every variant and size.
pub fn is_thorough(format: TensorType) -> bool {
    use TensorType::*;
    matches!(format, F32 | F16 | BF16 | Q8_0 | Q4_0 | Q6_K)
}

/// The variants that a format is tested with: all for thorough formats, else one, which differs between
/// neighbouring formats.
pub fn variants_for(format: TensorType, variants: &[Variant]) -> Vec<Variant> {
    let place = TensorType::ALL.iter().position(|of| *of == format);
    match is_thorough(format) {
        true => variants.to_vec(),
        false => vec![variants[place.expect("a format") % variants.len()]],
    }
}

/// The variants that a format is tested with, each with its sizes: one that all have, and of the other sizes as many as
/// it takes to have each with some variant. Not all pairs, because pipelines take time to compile.
pub fn variants_with_sizes(
    format: TensorType,
    variants: &[Variant],
) -> Vec<(Variant, Vec<(usize, usize)>)> {
    let variants = variants_for(format, variants);
    let [first, main, others @ ..] = &sizes(format)[..] else {
        let with_sizes = variants.into_iter().map(|it| (it, sizes(format)));
        return with_sizes.collect();
    };
    let mut others = [&[*first], others].concat();
    // In blocks of 256 columns, two sizes are the same.
    others.retain(|size| size != main);
    let mut sizes_of = vec![vec![*main]; variants.len()];
    let place = TensorType::ALL.iter().position(|of| *of == format);
    for i in 0..others.len().max(variants.len()) {
        // Other variants meet a size in the next format.
        let variant = (i + place.expect("a format")) % variants.len();
        sizes_of[variant].push(others[i % others.len()]);
    }
    variants.into_iter().zip(sizes_of).collect()
}
