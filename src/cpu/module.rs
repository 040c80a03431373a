//! The kernel module: this crate compiled once more, with the feature `module`, as a wasm module of its own that works in
//! the memory of the main module. There is one with relaxed SIMD, and one without for engines that do not have it. The
//! main module calls it for products and attention: where there is relaxed SIMD, and where other threads compute, too.
//! Compiling and loading it, and its threads, are the host's.
//!
//! `scripts/build.mjs` compiles it, and refuses it if it has data, whose addresses would be the main module's. So its code
//! neither panics nor allocates. It imports `env.memory`. The host sets `__stack_pointer` to the end of [`STACK_BYTES`] that
//! the main module has allocated for this, aligned to 16 bytes, one for each thread.
//!
//! The kernels are compiled once more, into a module of their own (`www/src/worker/cpu_kernels.ts`), which imports the
//! memory of the main module. A wasm module that contains an unsupported instruction is refused as a whole, so the main
//! module has fixed-width SIMD only, and the kernel module has relaxed SIMD (250 kB, 34 kB compressed). It computes
//! products and, where there are threads, attention. It is used only if it gives the same bits as the main module on
//! small cases of every type. Its code neither panics nor allocates nor has data, because data would lie where the main
//! module's is; the build checks that. A hash of the sources is part of each call: a module of another version computes
//! nothing, and the main module's own kernels take over.

/// What a description of work at an address begins with.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Header {
    /// Of the code that reads it.
    version: u32,
    /// [`ATTENTION`], or the format of the matrix of a product.
    pub(crate) kind: u32,
}

impl Header {
    pub(crate) const fn new(kind: u32) -> Header {
        Header {
            version: VERSION,
            kind,
        }
    }
}

/// The kind of an attention.
pub(crate) const ATTENTION: u32 = u32::MAX;

/// Floats of the stack for the memory of a part of an attention. That of 32 queries of 256 elements; larger ones are
/// computed by the main module.
const SCRATCH_FLOATS: usize = 36 << 10;

/// The stack of an instance. Besides that memory there are few variables.
pub const STACK_BYTES: usize = (64 << 10) + SCRATCH_FLOATS * size_of::<f32>();

/// Of the sources that the module is compiled from. A module of other sources refuses to compute.
const VERSION: u32 = {
    let sources: &[&[u8]] = &[
        include_bytes!("activations.rs"),
        include_bytes!("format.rs"),
        include_bytes!("kernel.rs"),
        include_bytes!("lanes/attention/heads.rs"),
        include_bytes!("lanes/attention/load.rs"),
        include_bytes!("lanes/attention/mod.rs"),
        include_bytes!("lanes/attention/scores.rs"),
        include_bytes!("lanes/attention/softmax.rs"),
        include_bytes!("lanes/attention/values.rs"),
        include_bytes!("lanes/f32x8/mod.rs"),
        include_bytes!("lanes/f32x8/simd128.rs"),
        include_bytes!("lanes/functions.rs"),
        include_bytes!("lanes/kv.rs"),
        include_bytes!("module.rs"),
        include_bytes!("product.rs"),
        include_bytes!("simd/mod.rs"),
        include_bytes!("simd/quantize.rs"),
        include_bytes!("simd/wasm.rs"),
        include_bytes!("formats/block_scales.rs"),
        include_bytes!("formats/floats.rs"),
        include_bytes!("formats/iq4.rs"),
        include_bytes!("formats/k_scales.rs"),
        include_bytes!("formats/mod.rs"),
        include_bytes!("formats/mxfp4.rs"),
        include_bytes!("formats/planes.rs"),
        include_bytes!("formats/q2_k.rs"),
        include_bytes!("formats/q3_k.rs"),
        include_bytes!("formats/q4_0.rs"),
        include_bytes!("formats/q4_1.rs"),
        include_bytes!("formats/q4_k.rs"),
        include_bytes!("formats/q5_0.rs"),
        include_bytes!("formats/q5_1.rs"),
        include_bytes!("formats/q5_k.rs"),
        include_bytes!("formats/q6_k.rs"),
        include_bytes!("formats/q8_0.rs"),
    ];
    fnv_1a(sources)
};

/// FNV-1a of all bytes.
const fn fnv_1a(sources: &[&[u8]]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut source = 0;
    while source < sources.len() {
        let mut at = 0;
        while at < sources[source].len() {
            hash = (hash ^ sources[source][at] as u32).wrapping_mul(0x0100_0193);
            at += 1;
        }
        source += 1;
    }
    hash
}

#[cfg(target_feature = "simd128")]
pub use registry::use_module;
#[cfg(target_feature = "simd128")]
pub(crate) use registry::{instruction_set, run, run_attention, threads};

/// In the main module.
#[cfg(target_feature = "simd128")]
mod registry {
    use std::cell::RefCell;

    use crate::{
        activations::Activations,
        format::{Format, PANEL_ROWS},
        lanes::{
            attention::{AttentionParts, AttentionShape, attention},
            kv::{KvFormat, PAGE_TOKENS, Row},
        },
        product::{InstructionSet, Job, MAX_PARTS, Matrix, Product},
    };

    type Call = Box<dyn Fn(u32, u32) -> bool>;

    struct Module {
        call: Call,
        threads: usize,
        relaxed: bool,
    }

    thread_local! {
        static MODULE: RefCell<Option<Module>> = const { RefCell::new(None) };
    }

    /// Lets this thread's products and attentions be computed by the kernel module. `call` gets an address in the memory
    /// of this module and a number of parts; it calls the module's `compute` for each part, on `threads` threads, and
    /// says whether all results were not 0. If it says no, this module computes that itself. `relaxed` says whether the
    /// module has relaxed SIMD.
    ///
    /// The module is not used if it does not agree with this one on small products and attentions: engines had relaxed
    /// instructions before these were correct.
    pub fn use_module(threads: usize, relaxed: bool, call: impl Fn(u32, u32) -> bool + 'static) {
        let call: Call = Box::new(call);
        let agrees = Format::ALL
            .into_iter()
            .all(|format| agrees(&call, format, threads));
        let agrees = agrees
            && KvFormat::ALL
                .into_iter()
                .all(|format| attends(&call, format));
        MODULE.set(agrees.then_some(Module {
            call,
            threads,
            relaxed,
        }));
    }

    /// The threads that compute a product.
    pub(crate) fn threads() -> usize {
        MODULE.with_borrow(|module| module.as_ref().map_or(1, |module| module.threads))
    }

    /// Whether the module computes a product of a format, and as this module does.
    fn agrees(call: &Call, format: Format, threads: usize) -> bool {
        /// A tile of each size.
        const TOKENS: usize = 7;
        /// Enough to find threads that compute something else.
        const MAX_AGREED_THREADS: usize = 16;

        let cols = 256;
        let rows = threads.min(MAX_AGREED_THREADS) * PANEL_ROWS;
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(0x915f_77f5).wrapping_add(1);
            (state >> 24) as u8
        };
        let weights: Vec<u8> = (0..rows * format.file_row_bytes(cols))
            .map(|_| random())
            .collect();
        let inputs: Vec<f32> = (0..TOKENS * cols)
            .map(|_| f32::from(random() as i8))
            .collect();
        let panel_bytes = format.panel_bytes(cols);
        let mut panels = vec![0; rows / PANEL_ROWS * panel_bytes];
        let eight_rows = weights.chunks(PANEL_ROWS * format.file_row_bytes(cols));
        for (rows, panel) in eight_rows.zip(panels.chunks_mut(panel_bytes)) {
            format.pack(cols, rows, panel);
        }
        let mut x = Activations::default();
        x.set(&inputs, cols, format);
        let matrix = Matrix {
            format,
            rows,
            cols,
            panels: &panels,
        };
        let product = |run: &dyn Fn(&Job) -> bool| {
            let mut out = vec![0.0; TOKENS * rows];
            run(&Job::new(matrix, 0..rows, &x, out.as_mut_ptr())).then_some(out)
        };
        let parts = rows / PANEL_ROWS;
        let theirs = product(&|job| call(address::<Product>(job.product()), parts as u32));
        let ours = product(&|job| {
            // SAFETY: the result has the size.
            unsafe { job.run_with(InstructionSet::Wasm, 0, 1) };
            true
        });
        // Scales are of any bits, thus some results are NaN.
        let equal = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        match (theirs, ours) {
            (Some(theirs), Some(ours)) => theirs.iter().zip(&ours).all(equal),
            _ => false,
        }
    }

    /// Whether the module computes an attention over a format, and as this module does.
    fn attends(call: &Call, format: KvFormat) -> bool {
        let shape = AttentionShape {
            heads: 6,
            kv_heads: 2,
            head_dim: 32,
            window: Some(100),
            soft_cap: Some(5.0),
        };
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(0x915f_77f5).wrapping_add(1);
            f32::from((state >> 24) as i8) / 64.0
        };
        let mut kv = vec![0; 2 * format.page_words(shape.kv_dim())];
        for row in kv.chunks_exact_mut(format.words(shape.kv_dim())) {
            let values: Vec<f32> = (0..shape.kv_dim()).map(|_| random()).collect();
            format.store(row, &values);
        }
        let positions = [3, PAGE_TOKENS + 40, PAGE_TOKENS + 41];
        let rows = positions.map(|position| Row::new(position, &[1, 0]));
        let q: Vec<f32> = (0..rows.len() * shape.q_dim()).map(|_| random()).collect();
        let mut theirs = vec![0.0; q.len()];
        let parts = AttentionParts::new(&q, &kv, &rows, shape, format, &mut theirs);
        if !call(address(&parts), parts.parts() as u32) {
            return false;
        }
        let mut ours = vec![0.0; q.len()];
        attention(&q, &kv, &rows, shape, format, &mut ours);
        let equal = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
        theirs.iter().zip(&ours).all(equal)
    }

    fn address<T>(description: &T) -> u32 {
        std::ptr::from_ref(description) as u32
    }

    /// Whether the module computed the product.
    pub(crate) fn run(product: &Product, parts: usize) -> bool {
        MODULE.with_borrow(|module| {
            let module = module.as_ref();
            module.is_some_and(|module| (module.call)(address(product), parts as u32))
        })
    }

    /// Whether the module computed the attention, which it does if there are threads.
    pub(crate) fn run_attention(attention: &AttentionParts) -> bool {
        MODULE.with_borrow(|module| {
            let module = module.as_ref().filter(|module| module.threads > 1);
            let parts = attention.parts().min(MAX_PARTS);
            module.is_some_and(|module| (module.call)(address(attention), parts as u32))
        })
    }

    pub(crate) fn instruction_set() -> &'static str {
        MODULE.with_borrow(|module| {
            let relaxed = module.as_ref().is_some_and(|module| module.relaxed);
            if relaxed { "relaxed-simd" } else { "simd128" }
        })
    }
}

/// Computes a part of a product or of an attention and gives 1, or 0 if the caller is of other sources or the attention is
/// too large. Threads may compute different parts at the same time.
///
/// # Safety
/// Must point to a [`Product`] or an [`AttentionParts`], or at least to a version. `part` must be less than `parts`.
#[cfg(all(feature = "module", target_feature = "simd128"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn compute(description: *const Header, part: usize, parts: usize) -> u32 {
    use std::mem::MaybeUninit;

    use crate::{
        format::Format,
        lanes::attention::AttentionParts,
        product::{self, Product},
        simd::wasm::{Wasm, adds_dots},
    };

    // SAFETY: as of this function.
    unsafe {
        let Header { version, kind } = *description;
        if version != VERSION {
            return 0;
        }
        if kind == ATTENTION {
            let attention = &*description.cast::<AttentionParts>();
            if attention.scratch_floats() > SCRATCH_FLOATS {
                return 0;
            }
            let mut scratch = [MaybeUninit::<f32>::uninit(); SCRATCH_FLOATS];
            let mut next = part;
            while next < attention.parts() {
                attention.run_in(next, scratch.as_mut_ptr().cast());
                next += parts;
            }
            return 1;
        }
        if kind > Format::MXFP4 as u32 {
            return 0;
        }
        let product = &*description.cast::<Product>();
        let format = std::mem::transmute::<u32, Format>(kind);
        if adds_dots() {
            product::run::<Wasm<0, false>>(product, format, part, parts);
        } else {
            product::run::<Wasm<0, true>>(product, format, part, parts);
        }
    }
    1
}
