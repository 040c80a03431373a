//! The variants and matrices that ops validate their kernels for.

use inpage_cpu::lanes::activation::Activation;

use super::{
    arithmetic::Arithmetic,
    attention::{AttentionShape, Window},
    kv_memory::KvFormat,
    matrix::MatrixShape,
    rope_kv::RopeShape,
    store::{Finish, Store},
    variant::Variant,
};
use crate::tensor_types::TensorType;

/// The portable variant, quarters of blocks, subgroups of several sizes, and every arithmetic.
pub(super) fn variants() -> Vec<Variant> {
    let quarters = Variant {
        subgroups: true,
        lanes_per_row: 32,
        quarters: true,
        ..Variant::PORTABLE
    };
    let mut variants = vec![Variant::PORTABLE, quarters];
    for lanes_per_row in [4, 8, 32] {
        variants.push(Variant {
            subgroups: true,
            lanes_per_row,
            rows_per_group: 4,
            barrier_free: lanes_per_row < 32,
            ..Variant::PORTABLE
        });
    }
    for matmul in [Arithmetic::F16, Arithmetic::I8] {
        variants.push(Variant {
            matvec: Arithmetic::I8,
            matmul,
            ..Variant::PORTABLE
        });
    }
    variants
}

/// A matrix of every type, in every variant for the types whose modules stand alone. Types whose
/// modules share parts with others have one variant of each tiling.
pub(super) fn matrices() -> Vec<(MatrixShape, Variant)> {
    let each = |&ty: &TensorType| {
        let shape = MatrixShape {
            ty,
            rows: 33,
            cols: 172usize.next_multiple_of(ty.row_multiple()),
        };
        let mut variants = variants();
        if has_shared_parts(ty) {
            variants.truncate(3);
        }
        variants.into_iter().map(move |variant| (shape, variant))
    };
    TensorType::ALL.iter().flat_map(each).collect()
}

/// Whether a type's module shares parts with that of Q4_0 or Q6_K.
pub(super) fn has_shared_parts(ty: TensorType) -> bool {
    use TensorType::*;
    !matches!(ty, F32 | F16 | BF16 | Q8_0 | Q4_0 | Q6_K)
}

/// The steps after products: every finish for the types whose modules stand alone, all addends
/// for the others.
pub(super) fn stores(ty: TensorType) -> Vec<Store> {
    let mut stores = vec![Store {
        bias: true,
        delta: true,
        finish: Finish::Plain,
        residual: true,
    }];
    if !has_shared_parts(ty) {
        let (scale, cap) = (1.0, 30.0);
        stores.extend([
            Store {
                finish: Finish::SoftCap { scale, cap },
                ..Store::default()
            },
            Store {
                bias: true,
                delta: true,
                finish: Finish::Activation(Activation::Gelu),
                ..Store::default()
            },
            Store {
                finish: Finish::Scale(0.5),
                residual: true,
                delta: true,
                ..Store::default()
            },
            Store {
                bias: true,
                residual: true,
                ..Store::default()
            },
        ]);
    }
    stores
}

/// Heads of several sizes in every format of the KV cache: rotation, attention and the norm of heads.
pub(super) fn heads() -> Vec<(RopeShape, AttentionShape, Option<f32>, KvFormat)> {
    let mut heads = Vec::new();
    for (head_dim, rope_dims, neox) in [
        (8, 8, false),
        (64, 64, true),
        (80, 20, true),
        (96, 0, false),
        (128, 128, true),
        (256, 256, true),
    ] {
        let rope = RopeShape {
            heads: 8,
            kv_heads: 2,
            head_dim,
            neox,
            by_parts: false,
            norm_last: head_dim == 80,
            norms_values: false,
            only_queries: false,
            rope_dims,
            magnitude: 1.0,
            q_scale: 0.1,
            temperature: None,
            at: [0, 8 * head_dim, 10 * head_dim],
            stride: [12 * head_dim; 3],
        };
        for (window, soft_cap, norm_eps) in [
            (None, None, None),
            (Some(Window::Sliding(70)), Some(50.0), Some(1e-6)),
            (Some(Window::Chunk(70)), None, None),
        ] {
            let shape = AttentionShape {
                heads: 8,
                kv_heads: 2,
                head_dim,
                window,
                soft_cap,
            };
            let fits = |format: &KvFormat| head_dim % format.head_multiple() == 0;
            let formats = KvFormat::ALL.into_iter().filter(fits);
            heads.extend(formats.map(|format| (rope, shape, norm_eps, format)));
        }
    }
    heads
}
