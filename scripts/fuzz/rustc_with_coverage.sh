#!/bin/sh
# Compiles the crates of this repository with counters that libFuzzer reads. Cargo calls it as RUSTC_WORKSPACE_WRAPPER, so
# dependencies are compiled without counters and shared with every other build.

exec "$@" \
  -C passes=sancov-module \
  -C llvm-args=-sanitizer-coverage-level=4 \
  -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
  -C llvm-args=-sanitizer-coverage-pc-table \
  -C llvm-args=-sanitizer-coverage-trace-compares
