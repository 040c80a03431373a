//! Composes WGSL modules of `shaders/` into one kernel and launches it. Knows nothing of what a
//! kernel computes.

use std::cell::Cell;

use burn::cubecl::{
    CubeCount, CubeDim,
    prelude::KernelId,
    server::{Handle, KernelArguments},
};
use burn_wgpu::{CubeTensor, KernelSource, SourceKernel, SourceTemplate};

use super::Arithmetic;
use super::unroll::{replace_word, unroll};

thread_local! {
    static LAUNCHES: Cell<u64> = const { Cell::new(0) };
}

/// Kernels this thread has launched so far, for benchmarks: what is replayed from a captured graph
/// was counted when it was recorded.
pub fn launches() -> u64 {
    LAUNCHES.get()
}

/// Which form of the kernels a device runs, chosen and proven at start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Variant {
    /// Lanes reduce with subgroup operations instead of workgroup memory.
    pub subgroups: bool,
    /// The WGSL compiler wants `enable subgroups;` (browsers do, naga refuses it).
    pub enable_directives: bool,
    /// Lanes that share the rows of a matvec; with subgroups at most the smallest subgroup size.
    pub lanes_per_row: u32,
    /// Rows that one group of lanes computes in a matvec.
    pub rows_per_group: u32,
    /// Lanes of a matvec's workgroup.
    pub workgroup: u32,
    /// Tiles of a matmul lie in the registers of single lanes and a few lanes of a subgroup attend for
    /// a query head, without workgroup memory; needs subgroups.
    pub barrier_free: bool,
    /// Large tiles that a product has at least to be cut into such; small ones otherwise. A device
    /// that computes many workgroups side by side would stand idle over a few large ones.
    pub large_tiles_from: u32,
    /// Arithmetic for a few tokens: F32 or I8.
    pub matvec: Arithmetic,
    /// Arithmetic for many tokens; F32 where tiles lie in single lanes.
    pub matmul: Arithmetic,
}

impl Variant {
    /// Works on every WebGPU device.
    pub const PORTABLE: Variant = Variant {
        subgroups: false,
        enable_directives: false,
        lanes_per_row: 8,
        rows_per_group: 2,
        workgroup: 64,
        barrier_free: false,
        large_tiles_from: 1,
        matvec: Arithmetic::F32,
        matmul: Arithmetic::F32,
    };

    /// In a few words, as reports show it.
    pub fn name(&self) -> String {
        let reductions = match self.subgroups {
            true => format!("subgroups of {}", self.lanes_per_row),
            false => "portable".into(),
        };
        let mut name = reductions;
        if self.barrier_free {
            name.push_str(", no barriers");
        }
        for (op, arithmetic) in [("matvec", self.matvec), ("matmul", self.matmul)] {
            if arithmetic != Arithmetic::F32 {
                name.push_str(&format!(", {op} in {}", arithmetic.name()));
            }
        }
        name
    }
}

/// A composed kernel: WGSL text and what identifies it.
#[derive(Debug, Clone)]
pub struct Kernel {
    name: String,
    constants: String,
    modules: Vec<Module>,
    bindings: u32,
    directives: Vec<&'static str>,
    aliases: Vec<(&'static str, &'static str)>,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq)]
struct Module {
    source: &'static str,
    /// `weights_` in the source becomes this prefix, if given.
    instance: Option<&'static str>,
}

impl Kernel {
    /// A kernel called `<op>_<format>` after its shader file.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            constants: String::new(),
            modules: Vec::new(),
            bindings: 0,
            directives: Vec::new(),
            aliases: Vec::new(),
        }
    }

    /// Declares the next storage binding; the shader finds its number as `B_<name>`. The order of
    /// these calls is the order of buffers at launch.
    pub fn binding(mut self, name: &str) -> Self {
        let number = self.bindings;
        self.bindings += 1;
        self.constants
            .push_str(&format!("const B_{name}: u32 = {number}u;\n"));
        self
    }

    /// Declares `const NAME: u32`.
    pub fn constant(mut self, name: &str, value: usize) -> Self {
        let value = u32::try_from(value).expect("shader constants fit 32 bits");
        self.constants
            .push_str(&format!("const {name}: u32 = {value}u;\n"));
        self
    }

    /// Declares `const NAME: f32`.
    pub fn constant_f32(mut self, name: &str, value: f32) -> Self {
        self.constants
            .push_str(&format!("const {name}: f32 = {value:e};\n"));
        self
    }

    /// Declares `const NAME: bool`.
    pub fn constant_bool(mut self, name: &str, value: bool) -> Self {
        self.constants
            .push_str(&format!("const {name}: bool = {value};\n"));
        self
    }

    /// Lets modules say `name` for a type. Written out in the text: naga takes a WGSL alias of an
    /// array for a type of its own.
    pub fn alias(mut self, name: &'static str, ty: &'static str) -> Self {
        self.aliases.push((name, ty));
        self
    }

    /// Appends a module.
    pub fn module(mut self, source: &'static str) -> Self {
        self.modules.push(Module {
            source,
            instance: None,
        });
        self
    }

    /// Appends a module written for the name `weights`, under another name.
    pub fn instance(mut self, source: &'static str, name: &'static str) -> Self {
        self.modules.push(Module {
            source,
            instance: Some(name),
        });
        self
    }

    /// Turns on what the variant's modules need.
    pub fn variant(self, variant: Variant) -> Self {
        if variant.subgroups && variant.enable_directives {
            return self.directive("enable subgroups;\n");
        }
        self
    }

    /// Puts a line before everything else.
    pub fn directive(mut self, line: &'static str) -> Self {
        self.directives.push(line);
        self
    }

    /// The name, `<op>_<format>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole WGSL text.
    pub fn wgsl(&self) -> String {
        let mut text = format!(
            "{}// {}\n{}",
            self.directives.concat(),
            self.name,
            self.constants
        );
        for module in &self.modules {
            text.push('\n');
            match module.instance {
                Some(name) => {
                    text.push_str(&module.source.replace("weights_", &format!("{name}_")))
                }
                None => text.push_str(module.source),
            }
        }
        for (name, ty) in &self.aliases {
            text = replace_word(&text, name, ty);
        }
        unroll(&text, &|name| self.value(name))
    }

    /// The value of a declared `const NAME: u32`.
    fn value(&self, name: &str) -> Option<u32> {
        let declared = self.constants.lines().find_map(|line| {
            let (declared, value) = line.strip_prefix("const ")?.split_once(": u32 = ")?;
            (declared == name).then_some(value)
        });
        declared?.strip_suffix("u;")?.parse().ok()
    }

    /// Launches on the buffers of `tensors`, in the order of the declared bindings, over a grid of
    /// workgroups.
    pub(super) fn launch(self, tensors: &[&CubeTensor], grid: [u32; 3]) {
        debug_assert_eq!(tensors.len(), self.bindings as usize, "{}", self.name);
        let client = tensors[0].client.clone();
        let mut arguments = KernelArguments::new();
        for tensor in tensors {
            let handle: Handle = tensor.handle.clone();
            arguments = arguments.with_buffer(handle.binding());
        }
        // The workgroup size is a constant of the shader; cubecl's copy of it is not looked at.
        let dim = CubeDim::new_1d(1);
        LAUNCHES.set(LAUNCHES.get() + 1);
        client.launch(
            Box::new(SourceKernel::new(self, dim)),
            CubeCount::Static(grid[0], grid[1], grid[2]),
            arguments,
        );
    }
}

impl KernelSource for Kernel {
    fn source(&self) -> SourceTemplate {
        SourceTemplate::new(self.wgsl())
    }

    fn id(&self) -> KernelId {
        // Modules are static files: their addresses tell them apart without hashing their text.
        let modules: Vec<(usize, Option<&'static str>)> = self
            .modules
            .iter()
            .map(|module| (module.source.as_ptr() as usize, module.instance))
            .collect();
        KernelId::new::<Self>().info((
            self.name.clone(),
            self.constants.clone(),
            modules,
            self.directives.clone(),
            self.aliases.clone(),
        ))
    }

    fn lang(&self) -> &'static str {
        "wgsl"
    }
}

/// Spreads `count` workgroups over x and y so that neither exceeds the limit of WebGPU.
pub(super) fn grid(count: usize) -> [u32; 3] {
    const LIMIT: usize = 65_535;
    let y = count.div_ceil(LIMIT).max(1);
    let x = count.div_ceil(y).max(1);
    [x as u32, y as u32, 1]
}
