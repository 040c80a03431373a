//! The WGSL text of a kernel: constants, bindings and modules.
//!
//! Kernels are composed, not preprocessed. This file writes constants (shapes, binding numbers) and
//! concatenates modules: a tensor type, an input, a reduction, a KV format, a store from `shaders/shared`, the functions of
//! an activation. There is no `#ifdef`. Shapes are constants because a model has few of them and compilers use them. A module
//! is instantiated under a second name where a kernel reads two matrices.

use burn::cubecl::prelude::{ExecutionMode, KernelId};
use burn_wgpu::{KernelSource, SourceTemplate};

use super::unroll::{replace_word, unroll};

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

    /// Declares the next storage binding. The shader reads its number from `B_<name>`. The order of
    /// these calls is the order of the buffers at launch.
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

    /// Lets modules use `name` for a type. The text contains the type itself, because naga treats a
    /// WGSL alias of an array as a different type.
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

    /// Appends modules.
    pub fn modules(self, sources: &[&'static str]) -> Self {
        sources
            .iter()
            .fold(self, |kernel, source| kernel.module(source))
    }

    /// Appends modules written for the name `weights`, under another name: a kernel that reads two
    /// matrices has an instance for each.
    pub fn instance(mut self, sources: &[&'static str], name: &'static str) -> Self {
        self.modules.extend(sources.iter().map(|source| Module {
            source,
            instance: Some(name),
        }));
        self
    }

    /// Puts a directive before everything else.
    pub fn directive(mut self, line: &'static str) -> Self {
        self.directives.push(line);
        self
    }

    /// The number of declared bindings.
    pub(super) fn bindings(&self) -> u32 {
        self.bindings
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
}

impl KernelSource for Kernel {
    fn source(&self) -> SourceTemplate {
        SourceTemplate::new(self.wgsl())
    }

    fn id(&self) -> KernelId {
        // Modules are static strings: their addresses identify them without hashing their text.
        let modules: Vec<(usize, Option<&'static str>)> = self
            .modules
            .iter()
            .map(|module| (module.source.as_ptr() as usize, module.instance))
            .collect();
        let id = KernelId::new::<Self>().info((
            self.name.clone(),
            self.constants.clone(),
            modules,
            self.directives.clone(),
            self.aliases.clone(),
        ));
        // In checked mode naga adds a counter to every loop, with which matvecs take up to twice as long (docs/log.md,
        // 2026-11-26). Every loop of ours ends. A browser checks kernels by itself.
        id.mode(ExecutionMode::Unchecked)
    }

    fn lang(&self) -> &'static str {
        "wgsl"
    }
}
