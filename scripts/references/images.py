"""Makes src/images/references.json: hashes of images that Pillow has resized, that the image processor of SmolVLM has
cut into tiles, and that those of Gemma 3 and Qwen2-VL have resized. The images follow from their sizes, so that the test
makes the same ones.

    VENV/bin/python scripts/references/images.py

Needs Pillow before version 13, which resizes in another order.
"""

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402
from transformers import Gemma3ImageProcessor, Qwen2VLImageProcessor, SmolVLMImageProcessor  # noqa: E402

FILE = Path(__file__).parents[2] / "src/images/references.json"
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
SIZES = [(37, 23), (1, 1), (64, 48), (5, 300), (200, 3)]
TARGETS = [(37, 23), (16, 16), (90, 11), (1, 1), (128, 128), (37, 64)]
# Width, height, size.
STRETCHED = [(37, 23, 32), (20, 300, 56), (224, 224, 224), (1, 9, 30), (150, 149, 64)]
# Width, height, size of a tile, longest side.
TILES = [(37, 23, 32, 128), (64, 64, 32, 128), (20, 90, 16, 64), (300, 7, 32, 96), (31, 33, 32, 32)]
# Width, height, least and most pixels.
GRIDS = [
    (77, 43, 512, 1536), (9, 20, 512, 1536), (20, 50, 512, 1536), (40, 24, 512, 1536), (44, 28, 512, 4096),
    (1, 1, 512, 1536), (3, 400, 512, 4096), (190, 1, 512, 4096), (300, 200, 512, 65536),
]  # fmt: skip


def image(width, height):
    """Gradients with noise."""
    y, x, channel = np.mgrid[0:height, 0:width, 0:3].astype(np.uint64)
    noise = (x * 73 + y * 151 + channel * 199) ** 2 % 97
    return ((x * 5 + y * 3 + channel * 40 + noise) % 256).astype(np.uint8)


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in bytes(data):
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return f"{value:016x}"


def resized():
    for size in SIZES:
        source = Image.fromarray(image(*size))
        for target in TARGETS:
            for name, kind in FILTERS.items():
                data = source.resize(target, resample=kind).tobytes()
                yield {"from": size, "to": target, "filter": name, "hash": fnv1a(data)}


def tiles():
    for width, height, size, longest in TILES:
        processor = SmolVLMImageProcessor(
            do_image_splitting=True, size={"longest_edge": longest},
            max_image_size={"longest_edge": size}, do_rescale=False, do_normalize=False, do_pad=False,
        )  # fmt: skip
        found = processor(Image.fromarray(image(width, height)), return_row_col_info=True, return_tensors="np")
        tiles = found["pixel_values"][0].transpose(0, 2, 3, 1).astype(np.uint8)
        yield {
            "from": [width, height], "size": size, "longest": longest,
            "rows": found["rows"][0][0], "columns": found["cols"][0][0],
            "hashes": [fnv1a(np.ascontiguousarray(tile).tobytes()) for tile in tiles],
        }  # fmt: skip


def bytes_of(pixels):
    """The bytes of `[channel, row, column]`."""
    return np.ascontiguousarray(pixels.transpose(1, 2, 0).astype(np.uint8)).tobytes()


def stretched():
    for width, height, size in STRETCHED:
        processor = Gemma3ImageProcessor(
            size={"height": size, "width": size}, do_rescale=False, do_normalize=False,
        )  # fmt: skip
        found = processor(Image.fromarray(image(width, height)), return_tensors="np")
        yield {"from": [width, height], "size": size, "hash": fnv1a(bytes_of(found["pixel_values"][0]))}


def grids():
    patch, merge = 4, 2
    for width, height, least, most in GRIDS:
        processor = Qwen2VLImageProcessor(
            patch_size=patch, merge_size=merge, min_pixels=least, max_pixels=most, do_rescale=False,
            do_normalize=False,
        )  # fmt: skip
        found = processor(image(width, height), return_tensors="np", input_data_format="channels_last")
        _, rows, columns = found["image_grid_thw"][0].tolist()
        patches = found["pixel_values"].reshape(rows // merge, columns // merge, merge, merge, 3, 2, patch, patch)
        pixels = patches[:, :, :, :, :, 0].transpose(0, 2, 5, 1, 3, 6, 4).astype(np.uint8)
        yield {
            "from": [width, height], "side": patch * merge, "pixels": [least, most],
            "to": [columns * patch, rows * patch], "hash": fnv1a(np.ascontiguousarray(pixels).tobytes()),
        }  # fmt: skip


def main():
    lines = ",\n".join(json.dumps(it, separators=(",", ":")) for it in resized())
    cut = ",\n".join(json.dumps(it, separators=(",", ":")) for it in tiles())
    wide = ",\n".join(json.dumps(it, separators=(",", ":")) for it in stretched())
    sizes = ",\n".join(json.dumps(it, separators=(",", ":")) for it in grids())
    lists = [("resized", lines), ("tiles", cut), ("stretched", wide), ("grids", sizes)]
    FILE.write_text("{" + ",\n".join(f'"{name}": [\n{them}\n]' for name, them in lists) + "}\n")


if __name__ == "__main__":
    main()
