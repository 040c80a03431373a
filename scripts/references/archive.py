"""Archives of the files of one model, NAME.tar, whose bytes depend on those of the files alone."""

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


def write(path, files):
    """Writes an archive of files: their names and bytes."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def pack(name):
    """Replaces the files of a model in tests/parity/images by an archive."""
    if name in PLAIN:
        return
    paths = {part: FOLDER / f"{name}.{end}" for part, end in FILES.items()}
    paths = {part: path for part, path in paths.items() if path.exists()}
    write(FOLDER / f"{name}.tar", {part: path.read_bytes() for part, path in paths.items()})
    for path in paths.values():
        path.unlink()
