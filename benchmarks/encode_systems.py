"""The systems that `encode.py` compares: where each lives, what it loads, and its process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemel import _native
from gemel.checkpoint import ModelFolder, Normalise

WORKERS = Path(__file__).parent / "workers"
INT8_ONNX = "onnx/model_qint8_avx512_vnni.onnx"
INT8_OPENVINO = "openvino/model_int8.xml"
STREAMS = (1, 2)
# Some processors advertise AMX and trap on it, which kills OpenVINO; set it yourself where AMX works.
CAPPED = {"ONEDNN_MAX_CPU_ISA": os.environ.get("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI")}
OFFLINE = {"HF_HUB_OFFLINE": "1"}

GEMEL_INT8, GEMEL_FLOAT32 = "gemel int8", "gemel float32"
ONE_THREAD, ONE_CORE = "gemel int8, 1 thread", "gemel int8, 1 core"
TORCH = "sentence-transformers, torch float32"
ONNX = "sentence-transformers, onnxruntime int8"
OPENVINO = "OpenVINO int8"
FASTEMBED = "fastembed, the same ONNX int8"
SCALING = (ONE_THREAD, ONE_CORE)  # measured on the sentences alone


class Unavailable(Exception):
    """A system cannot be measured here; the message says why in one line."""


@dataclass(frozen=True)
class System:
    """What runs in one process."""

    name: str
    python: Path
    script: str
    settings: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def is_gemel(self) -> bool:
        return self.name.startswith("gemel")

    @property
    def is_int8(self) -> bool:
        return "int8" in self.name


def systems(folder: ModelFolder, name: str | None, cache: Path, peers: Path) -> list[System]:
    """All of them; peers read their exports from `cache`."""
    gemel = Path(sys.executable)
    torch, onnx, openvino, fastembed = (
        Path(f"{peers}{suffix}/bin/python").absolute() for suffix in ("", "-onnx", "-openvino", "-fastembed")
    )
    int8 = {"model": name, "precision": "int8"}
    model = str(cache)
    static = {
        "file": str(cache / INT8_OPENVINO),
        "tokenizer": str(cache / "tokenizer.json"),
        "max_tokens": folder.spec.max_tokens,
        "padding": int(folder.config.get("pad_token_id") or 0),
        "threads": _native.usable_cores(),
    }
    peer = "encode_sentence_transformers.py"
    return [
        System(GEMEL_INT8, gemel, "encode_gemel.py", int8),
        System(GEMEL_FLOAT32, gemel, "encode_gemel.py", {"model": name, "precision": "float32"}),
        System(ONE_THREAD, gemel, "encode_gemel.py", {**int8, "threads": 1}),
        System(ONE_CORE, gemel, "encode_gemel.py", {**int8, "threads": 1, "one_core": True}),
        System(TORCH, torch, peer, {"model": str(folder.path)}),
        System(ONNX, onnx, peer, {"model": model, "backend": "onnx", "file": INT8_ONNX}),
        *(
            System(_streams(n), openvino, "encode_openvino.py", {**static, "n_streams": n}, CAPPED)
            for n in STREAMS
        ),
        System(
            FASTEMBED,
            fastembed,
            "encode_fastembed.py",
            {"model": model, "file": INT8_ONNX, "dim": folder.spec.dim},
        ),
    ]


def _streams(n: int) -> str:
    return f"{OPENVINO}, {n} stream{'s' if n > 1 else ''}"


def prepare(system: System, folder: ModelFolder, cache: Path, peers: Path, calibration: list[str]) -> None:
    """Make the exports that a system reads, once; Unavailable where that fails."""
    if not system.python.exists():
        raise Unavailable(f"{system.python.parent.parent.name} is not installed (make bench-encode does it)")
    if system.is_gemel or system.name == TORCH:
        return
    if system.name != ONNX and (folder.spec.pooling.modes != ("mean",) or folder.spec.tail != (Normalise(),)):
        raise Unavailable("its runner is written for models with mean pooling and normalisation")
    limit = str(folder.spec.max_tokens)
    if not (cache / INT8_ONNX).exists():
        python = Path(f"{peers}-onnx/bin/python").absolute()
        _export(python, "export_onnx.py", str(folder.path), str(cache), limit)
    target = cache / INT8_OPENVINO
    if system.name.startswith(OPENVINO) and not target.exists():
        texts = cache / "calibration.json"
        texts.write_text(json.dumps(calibration), encoding="utf-8")
        target.parent.mkdir(exist_ok=True)
        files = (str(cache / "onnx" / "model.onnx"), str(cache / "tokenizer.json"), str(texts))
        _export(system.python, "export_openvino.py", *files, limit, str(target))


def _export(python: Path, script: str, *arguments: str) -> None:
    if not python.exists():
        raise Unavailable(f"{python.parent.parent.name} is not installed (make bench-encode does it)")
    done = subprocess.run(
        [python, WORKERS / script, *arguments],
        env={**os.environ, **OFFLINE, **CAPPED},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Unavailable(f"{script} ended with {done.returncode}: {_last_line(done.stdout)}")


class Worker:
    """A system in its own process, given one job at a time."""

    def __init__(self, system: System, logs: Path) -> None:
        self.system = system
        logs.mkdir(parents=True, exist_ok=True)
        self._log = logs / (re.sub(r"\W+", "-", system.name) + ".log")
        began = time.perf_counter()
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [system.python, WORKERS / system.script],
                env={**os.environ, **OFFLINE, **system.environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        answer = self.do(system.settings)
        self.start_seconds = time.perf_counter() - began
        self.versions: dict[str, str] = answer["versions"]
        self.peak_mb: dict[str, float] = {"start": answer["peak_mb"]}

    def do(self, job: dict[str, Any]) -> dict[str, Any]:
        """The answer to a job; Unavailable if the process has died of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            reason = _last_line(self._log.read_text(encoding="utf-8", errors="replace"))
            raise Unavailable(f"its process ended with {self._process.wait()}: {reason}")
        answered: dict[str, Any] = json.loads(answer)
        return answered

    def close(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
