"""Puts the files of a model in tests/parity/images into an archive, NAME.tar, whose bytes depend on theirs alone."""

import io
import tarfile
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "tests/parity/images"
FILES = {
    "text.gguf": "gguf", "tower.gguf": "mmproj.gguf", "reference.json": "json", "folder.json": "folder.json",
    "rows.npy": "npy",
}  # fmt: skip
# Models that other programs than tests/parity load: browsers, inspections.
PLAIN = ["gemma3", "idefics3", "qwen3vl"]


def pack(name):
    if name in PLAIN:
        return
    with tarfile.open(FOLDER / f"{name}.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        for part, end in FILES.items():
            path = FOLDER / f"{name}.{end}"
            if path.exists():
                entry = tarfile.TarInfo(part)
                entry.size = path.stat().st_size
                archive.addfile(entry, io.BytesIO(path.read_bytes()))
                path.unlink()
