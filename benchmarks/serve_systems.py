"""The servers that `serve.py` compares: how each is started, and its process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from gemel.checkpoint import read_encoder_folder

EXPORT = Path(__file__).parent / "workers" / "export_onnx.py"
START_SECONDS = 180.0
# Some processors advertise AMX and trap on it; set it yourself where AMX works.
CAPPED = {"ONEDNN_MAX_CPU_ISA": os.environ.get("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI")}
ENVIRONMENT = {**os.environ, **CAPPED, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True)
class Engine:
    """One of infinity's ways to compute, and the export it reads."""

    option: str
    exported: str | None = None
    read_as: str | None = None


# On a processor infinity takes the file whose name says that it is quantised, and else model.onnx.
ENGINES = {
    "torch": Engine("torch"),
    "onnx": Engine("optimum", "model.onnx", "model.onnx"),
    "onnx-int8": Engine("optimum", "model_qint8_avx512_vnni.onnx", "model_quantized.onnx"),
}


@dataclass(frozen=True)
class Start:
    """How a server is started."""

    name: str
    command: list[str]
    port: int
    folder: Path


@dataclass(frozen=True)
class Server:
    """A running server."""

    name: str
    process: subprocess.Popen[bytes]
    port: int

    def memory_megabytes(self) -> float:
        """What the process holds now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) / 1_024


def starts(model: Path, peers: Path | None, engines: tuple[str, ...], work: Path) -> list[Start]:
    """gemel, and infinity with each engine."""
    port = free_port()
    gemel = [sys.executable, "-c", "from gemel.cli import main; main()", "serve", "--log-level", "warning"]
    found = [
        Start("gemel", [*gemel, "--model", str(model), "--alias", "model", "--port", str(port)], port, work)
    ]
    return found + [infinity(model, peers, name, work) for name in (engines if peers is not None else ())]


def infinity(model: Path, peers: Path, name: str, work: Path) -> Start:
    """infinity-emb with one engine, which reads the folder it is started in."""
    engine, port = ENGINES[name], free_port()
    folder = model if engine.exported is None else exported(model, peers, engine, work / name)
    command = [f"{Path(f'{peers}-infinity').absolute()}/bin/infinity_emb", "v2", "--model-id", "."]
    command += ["--engine", engine.option, "--served-model-name", "model", "--url-prefix", "/v1"]
    command += ["--device", "cpu", "--dtype", "float32", "--port", str(port), "--no-model-warmup"]
    return Start(f"infinity {name}", command, port, folder)


def exported(model: Path, peers: Path, engine: Engine, target: Path) -> Path:
    """A folder with the one onnx file of an engine, where infinity looks for it."""
    limit = read_encoder_folder(model).spec.max_tokens
    command = [f"{peers}-onnx/bin/python", str(EXPORT), str(model), str(target), str(limit)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"the export for infinity failed: {done.stderr.strip()[-300:]}")
    (target / "onnx" / str(engine.exported)).rename(target / str(engine.read_as))
    for left in (target / "onnx").iterdir():
        left.unlink()
    return target


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def running(start: Start) -> Iterator[Server]:
    """A server, from its first answer on."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(start.command, stdout=log, stderr=log, env=ENVIRONMENT, cwd=start.folder)
        try:
            _await(process, start)
            yield Server(start.name, process, start.port)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _await(process: subprocess.Popen[bytes], start: Start) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{start.port}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    raise click.ClickException(f"{start.name} did not start: {' '.join(start.command)}")
