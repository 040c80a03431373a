//! Tests of products: exact values of packed rows, equal bits on all instruction sets, and closeness to the product of
//! floats.

mod matrices;
mod products;
mod speed;
mod values;
