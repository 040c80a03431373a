#!/bin/sh
# Compiles the crates of this repository with counters that libFuzzer reads. Cargo calls it as RUSTC_WORKSPACE_WRAPPER, so
# dependencies are compiled without counters and shared with every other build.

# Inputs are small, so that little time goes into kernels. Optimizing them takes as long as compiling the library.
case " $* " in *" --crate-name inpage_cpu "*) set -- "$@" -C opt-level=0 ;; esac

exec "$@" \
  -C passes=sancov-module \
  -C llvm-args=-sanitizer-coverage-level=4 \
  -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
  -C llvm-args=-sanitizer-coverage-pc-table \
  -C llvm-args=-sanitizer-coverage-trace-compares
