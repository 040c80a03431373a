"""Writes src/tensor_types/vectors.txt: the numbers and block sizes of ggml's tensor types, and blocks of the
quantized ones with their values, as the `gguf` package from PyPI defines and decodes them (pip install gguf==0.19.0;
python3 scripts/vectors/block_vectors.py). Blocks are random bytes with chosen f16 scales: common ones, subnormal, the
largest, negative, zero.
"""

import pathlib

import gguf
import numpy as np
from gguf.constants import GGMLQuantizationType as Type

# Offsets of the f16 values in a block, of every type with blocks that the package decodes: also of those that no build
# reads yet.
HALVES = {
    Type.Q8_0: [0],
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q2_K: [80, 82],
    Type.Q3_K: [108],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
    Type.IQ4_NL: [0],
    Type.IQ4_XS: [0],
    Type.MXFP4: [],
    Type.IQ2_XXS: [0],
    Type.IQ2_XS: [0],
    Type.IQ2_S: [0],
    Type.IQ3_XXS: [0],
    Type.IQ3_S: [0],
    Type.IQ1_S: [0],
    Type.IQ1_M: [],
    Type.TQ1_0: [52],
    Type.TQ2_0: [64],
    Type.NVFP4: [],
}
# f16 bits of the scales, used in turn: 0.013, -0.21, the least and greatest subnormal (negative),
# the largest value, zero.
SCALES = [0x22A8, 0xB2B8, 0x0001, 0x83FF, 0x7BFF, 0x0000]
# The number, the block length, the bytes of a block and the elements of a byte, the first lowest, of types that the package
# does not decode. Blocks begin with an f16 d; values are (2 * bit - 1) * d for bits, (q - 1) * d for pairs of bits.
PLAIN = {"Q1_0": (41, 128, 18, 8), "Q2_0": (42, 64, 18, 4)}
# From subnormal scales to the largest with finite values.
EXPONENTS = [0, 1, 2, 120, 127, 252]
# Types that both implementations can quantize to.
ENCODED = [Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1]


def little_endian(values):
    return np.ascontiguousarray(values).astype("<f4").tobytes().hex()


def plain(name):
    """The line with random blocks of a type of PLAIN and their values."""
    number, block_len, block_bytes, per_byte = PLAIN[name]
    random = np.random.default_rng([5, number])
    blocks = random.integers(0, 256, (7, block_bytes), dtype=np.uint8)
    scales = np.array((SCALES + SCALES[:1]), dtype="<u2")
    blocks[:, :2] = scales.view(np.uint8).reshape(-1, 2)
    d = scales.view("<f2").astype(np.float32).reshape(-1, 1)
    bits = 8 // per_byte
    quants = blocks[:, 2:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & (2**bits - 1)
    levels = quants.reshape(-1, block_len).astype(np.float32)
    levels = levels * 2 - 1 if bits == 1 else levels - 1
    return f"decode {name} {blocks.tobytes().hex()} {little_endian(levels * d)}"


def main():
    sizes = gguf.GGML_QUANT_SIZES.items()
    lines = [f"type {ty.name} {int(ty)} {len} {bytes}" for ty, (len, bytes) in sizes]
    known = {ty.name for ty in gguf.GGML_QUANT_SIZES}
    lines += [f"type {name} {number} {length} {size}" for name, (number, length, size, _) in PLAIN.items() if name not in known]
    for ty, halves in HALVES.items():
        # A seed per type, so that adding a type changes no other line.
        random = np.random.default_rng([5, int(ty)])
        block_len, block_bytes = gguf.GGML_QUANT_SIZES[ty]
        # An odd number of blocks of 32.
        turns = [0, 1, 2, 3, 4, 5, 0] if block_len == 32 else [0, 1, 2, 4]
        blocks = random.integers(0, 256, (len(turns), block_bytes), dtype=np.uint8)
        for turn, block in zip(turns, blocks):
            for place, at in enumerate(halves):
                scale = SCALES[(turn + 3 * place) % len(SCALES)]
                block[at : at + 2] = np.frombuffer(scale.to_bytes(2, "little"), np.uint8)
            if ty == Type.MXFP4:
                block[0] = EXPONENTS[turn]
        values = gguf.quants.dequantize(blocks, ty)
        assert np.isfinite(values).all(), ty
        lines.append(f"decode {ty.name} {blocks.tobytes().hex()} {little_endian(values)}")
    lines += [plain(name) for name in PLAIN]
    for ty in ENCODED:
        random = np.random.default_rng([6, int(ty)])
        values = random.normal(0, 1, (4, 32)).astype(np.float32)
        values[1] = 0
        values[2] = np.abs(values[2]) * 1e-6
        values[3, 5] = 3e4
        encoded = gguf.quants.quantize(values, ty)
        lines.append(f"encode {ty.name} {little_endian(values)} {encoded.tobytes().hex()}")
    root = pathlib.Path(__file__).resolve().parents[2]
    path = root / "src/tensor_types/vectors.txt"
    path.write_text("\n".join(lines) + "\n")


main()
