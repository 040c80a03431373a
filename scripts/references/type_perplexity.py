"""Perplexities of a model in the types of few bits: quantized by llama.cpp's own library, and the same weights as that library decodes
them, in F32. Prints a JSON line per type. The difference is what inpage's kernels add. Commits and keeps nothing.

    pip install gguf numpy; npm i --no-save --ignore-scripts node-llama-cpp@3.22.1
    cargo build --release --example serve
    python scripts/references/type_perplexity.py --model ts4m-F16.gguf --text tinystories_heldout_60.txt \
        --ggml node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/libggml-base.so --serve target/release/examples/serve

Only matrices of layers are quantized. Types that need the importance of columns get equal importances.
"""

import argparse
import ctypes
import json
import math
import re
import struct
import subprocess
import tempfile
import urllib.request
from pathlib import Path

import gguf
import numpy as np

# Numbers of GGUF.
TYPES = {
    "Q1_0": 41, "Q2_0": 42, "TQ1_0": 34, "TQ2_0": 35, "IQ1_S": 19, "IQ1_M": 29, "IQ2_XXS": 16, "IQ2_XS": 17, "IQ2_S": 22,
    "IQ3_XXS": 18, "IQ3_S": 21, "IQ4_NL": 20, "IQ4_XS": 23, "Q2_K": 10, "Q3_K": 11, "MXFP4": 39, "NVFP4": 40,
}  # fmt: skip
F32, F16 = 0, 1
ALIGNMENT = 32
WINDOW = 256


class Traits(ctypes.Structure):
    """`ggml_type_traits` up to the decoder."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("block_len", ctypes.c_int64),
        ("block_len_interleaved", ctypes.c_int64),
        ("block_bytes", ctypes.c_size_t),
        ("is_quantized", ctypes.c_bool),
        ("to_float", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)),
    ]


class Ggml:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.ggml_get_type_traits.restype = ctypes.POINTER(Traits)
        self.library.ggml_quantize_chunk.restype = ctypes.c_size_t
        self.library.ggml_quantize_chunk.argtypes = [
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
        ]  # fmt: skip

    def quantized(self, name, values):
        """The bytes of a matrix, and the values that they decode to."""
        ty = TYPES[name]
        traits = self.library.ggml_get_type_traits(ty).contents
        if traits.name.decode().upper() != name:
            raise SystemExit(f"type {ty} of this ggml is {traits.name.decode()}, not {name}")
        values = np.ascontiguousarray(values, dtype=np.float32)
        rows, columns = values.shape
        encoded = np.zeros(values.size // traits.block_len * traits.block_bytes, dtype=np.uint8)
        importances = np.ones(columns, dtype=np.float32)
        pointers = values.ctypes.data, encoded.ctypes.data, 0, rows, columns, importances.ctypes.data
        written = self.library.ggml_quantize_chunk(ty, *pointers)
        assert written == encoded.size, (name, written, encoded.size)
        decoded = np.zeros_like(values)
        traits.to_float(encoded.ctypes.data, decoded.ctypes.data, values.size)
        return encoded.tobytes(), decoded


def write(path, reader, tensors):
    """A file with the metadata of `reader`; `tensors` are names, lengths (rows first), types and bytes."""
    source = Path(reader.data.filename).read_bytes()
    metadata = source[24 : reader.tensors[0].field.offset]
    infos, data = b"", b""
    for name, shape, ty, content in tensors:
        data += bytes(-len(data) % ALIGNMENT)
        text = name.encode()
        infos += struct.pack("<Q", len(text)) + text + struct.pack("<I", len(shape))
        infos += struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", ty, len(data))
        data += content
    header = source[:8] + struct.pack("<Q", len(tensors)) + source[16:24] + metadata + infos
    Path(path).write_bytes(header + bytes(-len(header) % ALIGNMENT) + data)


class Server:
    def __init__(self, program, model, device):
        command = [program, "--port", "0", "--model", str(model), "--id", "m", "--context", str(2 * WINDOW), "--device", device]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if found := re.match(r"listening on (http:\S+)", line):
                self.origin = found[1]
                return
        raise SystemExit(f"{program} has not started")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def ask(self, path, body):
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.origin + path, data, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def logprobs(self, ids):
        body = {"model": "m", "prompt": ids, "echo": True, "max_tokens": 0, "logprobs": 0}
        return self.ask("/v1/completions", body)["choices"][0]["logprobs"]["token_logprobs"]


def perplexity(program, model, device, windows):
    """The perplexity of the second halves of the windows."""
    with Server(program, model, device) as server:
        seen = [value for ids in windows for value in server.logprobs(ids)[WINDOW // 2 :]]
    return math.exp(-sum(seen) / len(seen))


def main():
    parser = argparse.ArgumentParser()
    for name in ("--model", "--text", "--ggml", "--serve"):
        parser.add_argument(name, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--windows", type=int, default=12)
    parser.add_argument("--types", nargs="*", default=list(TYPES))
    options = parser.parse_args()
    reader = gguf.GGUFReader(options.model)
    ggml = Ggml(options.ggml)
    with Server(options.serve, options.model, options.device) as server:
        text = Path(options.text).read_text()
        ids = server.ask("/tokenize", {"model": "m", "prompt": text})["tokens"]
    all_windows = [ids[i : i + WINDOW] for i in range(0, len(ids) - WINDOW + 1, WINDOW)]
    windows = all_windows[:: max(1, len(all_windows) // options.windows)][: options.windows]
    measure = lambda model: perplexity(options.serve, model, options.device, windows)
    whole = measure(options.model)
    for name in options.types:
        files = [], []
        for tensor in reader.tensors:
            shape, ty = [int(length) for length in tensor.shape], int(tensor.tensor_type)
            bytes_of_file = np.ascontiguousarray(tensor.data).tobytes()
            unchanged = tensor.name, shape, ty, bytes_of_file
            if not tensor.name.startswith("blk.") or len(shape) != 2 or ty != F16:
                files[0].append(unchanged)
                files[1].append(unchanged)
                continue
            values = np.frombuffer(bytes_of_file, dtype=np.float16).reshape(shape[::-1])
            encoded, decoded = ggml.quantized(name, values)
            files[0].append((tensor.name, shape, TYPES[name], encoded))
            files[1].append((tensor.name, shape, F32, decoded.tobytes()))
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / f"{name}-{kind}.gguf" for kind in ("as-is", "decoded")]
            for path, tensors in zip(paths, files):
                write(path, reader, tensors)
            as_is, decoded = (measure(path) for path in paths)
        result = {"type": name, "device": options.device, "perplexity": as_is, "decoded": decoded}
        print(json.dumps(result | {"change": as_is / decoded - 1, "f16": whole}), flush=True)


if __name__ == "__main__":
    main()
