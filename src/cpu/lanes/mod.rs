//! Kernels on f32 values, written over eight lanes.
