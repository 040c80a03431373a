//! Stands in for the crate `inventory`, with registries that stay empty. `Cargo.toml` of the workspace puts it in its place.
//!
//! `pliron`, the IR of cubecl's kernel compiler, registers its operations, types and traits here on wasm. (Elsewhere it uses
//! `linkme`.) The real crate emits a constructor for each, which the linker keeps with everything that it refers to: two
//! thirds of the functions of the wasm module. No kernel of this project is compiled by cubecl, because each is WGSL, so
//! nothing needs to be registered.

#![no_std]

/// Declares that a type has a registry. All registries are empty, so there is nothing to declare.
#[macro_export]
macro_rules! collect {
    ($type:ty) => {};
}

/// Drops what would be registered.
#[macro_export]
macro_rules! submit {
    ($($value:tt)*) => {};
}

/// The registered values of a type: none.
pub fn iter<T: 'static>() -> impl Iterator<Item = &'static T> {
    core::iter::empty()
}
