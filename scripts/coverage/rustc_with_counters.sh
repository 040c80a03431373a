#!/bin/sh
# Compiles the crates of this repository with counters of executed regions. Cargo calls it as RUSTC_WORKSPACE_WRAPPER, so
# dependencies are compiled without counters and shared with every other build.
exec "$@" -C instrument-coverage
