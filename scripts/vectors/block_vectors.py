"""Writes src/tensor_types/vectors.txt: the numbers and block sizes of ggml's tensor types, and blocks of the
quantized ones with their values, as the `gguf` package from PyPI defines and decodes them (pip install gguf;
python3 scripts/vectors/block_vectors.py). A later version of the package adds types and changes no line. Blocks are random bytes
with chosen f16 scales: common ones, subnormal, the largest, negative, zero.
"""

import pathlib

import gguf
import numpy as np
from gguf.constants import GGMLQuantizationType as Type

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


def halves(ty):
    """Offsets of the f16 values in a block of a type: those where a NaN shows in the values. `None` if the package does not decode it."""
    _, block_bytes = gguf.GGML_QUANT_SIZES[ty]
    nan = np.array([np.nan], dtype="<f2").view(np.uint8)

    def shows(at):
        block = np.zeros((1, block_bytes), dtype=np.uint8)
        block[0, at : at + 2] = nan
        return np.isnan(gguf.quants.dequantize(block, ty)).any()

    try:
        return [at for at in range(0, block_bytes - 1, 2) if shows(at)]
    except NotImplementedError:
        return None


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
    for ty, (block_len, block_bytes) in gguf.GGML_QUANT_SIZES.items():
        places = halves(ty) if block_len > 1 else None
        if places is None:
            continue
        # A seed per type, so that adding a type changes no other line.
        random = np.random.default_rng([5, int(ty)])
        # An odd number of blocks of 32.
        turns = [0, 1, 2, 3, 4, 5, 0] if block_len == 32 else [0, 1, 2, 4]
        blocks = random.integers(0, 256, (len(turns), block_bytes), dtype=np.uint8)
        for turn, block in zip(turns, blocks):
            for place, at in enumerate(places):
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
