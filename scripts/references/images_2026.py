"""Makes src/images/references_2026.json: hashes of images as the processors of the families of 2026 resize and cut them. The
images are those of images.py.

    VENV/bin/pip install -r scripts/references/requirements-folders.txt
    VENV/bin/python scripts/references/images_2026.py
"""

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402
from transformers import Lfm2VlImageProcessor  # noqa: E402
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil  # noqa: E402

FILE = Path(__file__).parents[2] / "src/images/references_2026.json"
# Width, height. Whole ones, one as large as a whole one may be, and ones that are cut.
LFM2VL = [(9, 20), (37, 61), (48, 64), (56, 64), (90, 40), (64, 64), (20, 150), (200, 150), (96, 30)]

GEMMA4 = [(37, 61), (200, 50), (9, 20), (100, 100), (84, 120), (1, 300), (400, 2), (1, 1), (640, 13)]


def image(width, height):
    """Gradients with noise, as in images.py."""
    y, x, channel = np.mgrid[0:height, 0:width, 0:3].astype(np.uint64)
    noise = (x * 73 + y * 151 + channel * 199) ** 2 % 97
    return ((x * 5 + y * 3 + channel * 40 + noise) % 256).astype(np.uint8)


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in bytes(data):
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return f"{value:016x}"


def patches_of(pixels, size):
    """`[height, width, 3]` as the patches of a tower, `[patches, size * size * 3]`."""
    rows, columns = pixels.shape[0] // size, pixels.shape[1] // size
    cut = pixels.reshape(rows, size, columns, size, 3).transpose(0, 2, 1, 3, 4)
    return cut.reshape(rows * columns, -1), (rows, columns)


def lfm2vl_parts(own, processor):
    """The tiles of an image and the whole image, `[height, width, 3]` each, resized by Pillow to the sizes of the processor.
    torchvision, which the processor itself resizes with, may differ by one."""
    source = Image.fromarray(image(*own))
    found = processor(source, return_row_col_info=True, return_tensors="pt", do_rescale=False, do_normalize=False)
    rows, columns, size = int(found["image_rows"][0]), int(found["image_cols"][0]), processor.tile_size
    height, width = map(int, found["image_sizes"][0])
    parts = []
    if rows * columns > 1:
        large = np.asarray(source.resize((columns * size, rows * size), Image.BILINEAR))
        parts += [large[y * size :][:size, x * size :][:, :size] for y in range(rows) for x in range(columns)]
    parts.append(np.asarray(source.resize((width, height), Image.BILINEAR)))
    patch = processor.encoder_patch_size
    for part, values in zip(parts, found["pixel_values"], strict=True):
        patches, _ = patches_of(part.astype(np.float32), patch)
        off = np.abs(values[: len(patches)].numpy() - patches).max()
        assert off <= 1, f"the processor differs by {off}"
    return parts, [int(rows), int(columns)]


def gemma4_pixels(own, rows, patch):
    """An image as Gemma 4's processor with Pillow resizes it, `[height, width, 3]`."""
    source = image(*own)
    resized = Gemma4ImageProcessorPil().aspect_ratio_preserving_resize(
        source.transpose(2, 0, 1), patch, 9 * rows, 3, Image.BICUBIC,
    )  # fmt: skip
    return np.ascontiguousarray(np.asarray(resized).transpose(1, 2, 0)).astype(np.uint8)


def hashes(parts):
    return [fnv1a(np.ascontiguousarray(part).tobytes()) for part in parts]


def lfm2vl():
    rows, patch, tile = [8, 24], 4, 32
    processor = Lfm2VlImageProcessor(
        min_image_tokens=rows[0], max_image_tokens=rows[1], encoder_patch_size=patch, tile_size=tile,
    )  # fmt: skip
    for own in LFM2VL:
        parts, grid = lfm2vl_parts(own, processor)
        yield {"from": own, "rows": rows, "side": 2 * patch, "tile": tile, "grid": grid, "hashes": hashes(parts)}


def gemma4():
    rows, patch = 70, 4
    for own in GEMMA4:
        pixels = gemma4_pixels(own, rows, patch)
        height, width, _ = pixels.shape
        yield {"from": own, "rows": rows, "side": 3 * patch, "to": [width, height], "hash": hashes([pixels])[0]}


def main():
    lists = {"grids_and_tiles": list(lfm2vl()), "largest": list(gemma4())}
    texts = {name: ",\n".join(json.dumps(it, separators=(",", ":")) for it in rows) for name, rows in lists.items()}
    FILE.write_text("{" + ",\n".join(f'"{name}": [\n{text}\n]' for name, text in texts.items()) + "}\n")


if __name__ == "__main__":
    main()
