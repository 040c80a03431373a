"""Matrices of four bits in the layouts of GPTQ and AWQ checkpoints, quantized by round-to-nearest with a
scale and a zero point per output and group of inputs."""

from dataclasses import dataclass

import numpy as np

LEVELS = 16
PER_WORD = 8
# The index among eight adjacent outputs that AutoAWQ puts into each nibble of a word, lowest nibble first.
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


@dataclass
class Packing:
    """How a folder's matrices are quantized and packed."""

    # `gptq` (zeros minus one), `gptq_v2` (zeros unchanged) or `awq` (the GEMM form).
    form: str
    group_size: int
    # Zeros are all 8.
    symmetric: bool = False
    # Inputs are grouped in an order that GPTQ derives from activations. Here the order is random.
    act_order: bool = False
    # Every matrix has a bias of zeros, as in folders written by early versions of AutoGPTQ.
    idle_biases: bool = False

    def config(self):
        """`quantization_config` as the tools write it."""
        if self.form == "awq":
            return {"quant_method": "awq", "bits": 4, "group_size": self.group_size,
                    "zero_point": True, "version": "gemm", "modules_to_not_convert": None}  # fmt: skip
        return {"quant_method": "gptq", "bits": 4, "group_size": self.group_size,
                "sym": self.symmetric, "desc_act": self.act_order,
                "checkpoint_format": self.form}  # fmt: skip

    def groups(self, inputs, generator):
        """The group of each input."""
        groups = np.arange(inputs, dtype=np.int32) // self.group_size
        return generator.permutation(groups) if self.act_order else groups

    def quantize(self, weight, groups):
        """Levels `[out, in]`, zeros and scales `[groups, out]` of a matrix `[out, in]`."""
        levels = np.zeros(weight.shape, np.uint32)
        zeros, scales = [], []
        for group in range(groups.max() + 1):
            part = weight[:, groups == group]
            low, high = np.minimum(part.min(axis=1), 0), np.maximum(part.max(axis=1), 0)
            if self.symmetric:
                high = np.maximum(-low, high)
                low = -high
            scale = ((high - low) / (LEVELS - 1)).astype(np.float16)
            scale = np.maximum(scale, np.float16(1e-4))
            zero = np.rint(-low / scale.astype(np.float32)).clip(0, LEVELS - 1)
            if self.symmetric:
                zero = np.full_like(zero, LEVELS / 2)
            exact = part / scale.astype(np.float32)[:, None] + zero[:, None]
            levels[:, groups == group] = np.rint(exact).clip(0, LEVELS - 1)
            zeros.append(zero.astype(np.uint32))
            scales.append(scale)
        return levels, np.stack(zeros), np.stack(scales)

    def pack(self, levels, zeros, scales, groups):
        """The tensors by the suffix that follows the module's name."""
        tensors = {"scales": scales}
        if self.form == "awq":
            tensors["qweight"] = words(levels.T, AWQ_ORDER)
            tensors["qzeros"] = words(zeros, AWQ_ORDER)
            return tensors
        less = 1 if self.form == "gptq" else 0
        order = list(range(PER_WORD))
        tensors["qweight"] = np.ascontiguousarray(words(levels, order).T)
        tensors["qzeros"] = words((zeros - less) % LEVELS, order)
        tensors["g_idx"] = groups
        return tensors


def words(levels, order):
    """Packs eight adjacent values of a row per word. `order` has the index of the value in each nibble."""
    eight = levels.astype(np.uint32).reshape(levels.shape[0], -1, PER_WORD)
    packed = np.zeros(eight.shape[:2], np.uint32)
    for nibble, which in enumerate(order):
        packed |= eight[:, :, which] << np.uint32(4 * nibble)
    return packed.view(np.int32)


def dequantize(levels, zeros, scales, groups):
    """The matrix `[out, in]` in float32."""
    scale, zero = scales.astype(np.float32)[groups].T, zeros[groups].T
    return scale * (levels.astype(np.float32) - zero.astype(np.float32))
