"""Who may import what: everything points down."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "gemel"
BASE = {"contracts", "errors", "similarity", "version", "progress", "table", "drawing", "threads", "_native"}
# room -> the rooms it may import, besides the base and itself
ALLOWED: dict[str, set[str]] = {
    "version": set(),
    "errors": set(),
    "contracts": set(),
    "progress": set(),
    "table": set(),
    "drawing": set(),
    "threads": set(),
    "similarity": set(),
    "checkpoint": set(),
    "tokens": {"checkpoint"},
    "data": set(),
    "text_encoder": {"checkpoint", "tokens"},
    "pair_scorer": {"checkpoint", "tokens"},
    "model": {"checkpoint", "tokens", "text_encoder", "pair_scorer", "encoders"},
    "engine": {"checkpoint", "tokens", "text_encoder", "pair_scorer"},
    "encoders": {"checkpoint", "tokens", "text_encoder", "data"},
    "loading": {"checkpoint", "engine", "encoders", "model", "tasks", "text_encoder", "pair_scorer"},
    "inventory": {"checkpoint", "encoders", "loading"},
    "publishing": {"checkpoint", "inventory", "loading"},
    "index": {"data"},
    "tasks": {"checkpoint", "data", "index"},
    "evaluate": {"data", "tasks", "index"},
    "train": {"model", "data", "checkpoint", "tokens", "encoders", "text_encoder", "pair_scorer"},
    "serve": {"checkpoint", "data", "index", "loading", "pair_scorer", "tasks", "text_encoder", "tokens"},
    "scale": {"data", "index", "loading", "tasks", "text_encoder"},
    "client": set(),
    "adapters": {"checkpoint", "index", "loading", "pair_scorer", "tasks", "text_encoder"},
    "reproduce": {"train", "evaluate", "loading", "model", "encoders", "data", "checkpoint", "tasks"},
}
TORCH_ROOMS = {"model", "train", "reproduce", "adapters"}
TORCH_NAMES = {"torch", "transformers"}
OPEN_ROOMS = {"cli", "__init__", "__main__"}  # these may import anything


every_module = pytest.mark.parametrize(
    "file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE))
)


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_names(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            names.add(str(node.module))
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


@every_module
def test_a_module_imports_only_what_its_room_may(file: Path) -> None:
    room, names = room_of(file), imported_names(file)
    own = {name.split(".")[1] for name in names if name.startswith("gemel.")}
    if room not in OPEN_ROOMS:
        assert own <= ALLOWED[room] | BASE | {room}
        assert room in TORCH_ROOMS or not TORCH_NAMES & {name.split(".")[0] for name in names}


@every_module
def test_adapters_import_torch_only_when_somebody_asks_for_tensors(file: Path) -> None:
    if room_of(file) == "adapters":
        assert not TORCH_NAMES & {name.split(".")[0] for name in top_level_imports(file)}


@pytest.mark.parametrize("top", ["adapters", "cli", "reproduce", "serve"])
def test_nothing_but_the_command_line_imports_the_rooms_on_top(top: str) -> None:
    for file in PACKAGE.rglob("*.py"):
        if room_of(file) not in ("cli", "__main__", top):
            assert not any(f"{name}.".startswith(f"gemel.{top}.") for name in imported_names(file)), file


@every_module
def test_modules_and_functions_can_be_seen_whole(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count("\n") <= 400, f"{file} is too long to live in"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            n_lines = (node.end_lineno or 0) - node.lineno + 1
            assert n_lines <= 50, f"{file}: {node.name} has {n_lines} lines"
            names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
            n_parameters = len([name for name in names if name not in ("self", "cls")])
            # The signatures of adapters are other people's.
            assert n_parameters <= 8 or room_of(file) == "adapters", (
                f"{file}: {node.name} has {n_parameters} parameters"
            )


@every_module
def test_no_property_is_computed_under_a_lock_that_a_fork_may_inherit(file: Path) -> None:
    assert "functools.cached_property" not in imported_names(file), f"{file}: use gemel.threads.once"


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {module_name(file): file for file in PACKAGE.rglob("*.py")}
    graph = {name: top_level_imports(file) & set(modules) - {name} for name, file in modules.items()}
    while graph:
        leaves = [name for name, imports in graph.items() if not imports & set(graph)]
        assert leaves, f"these import each other: {sorted(graph)}"
        for leaf in leaves:
            del graph[leaf]


def module_name(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def top_level_imports(file: Path) -> set[str]:
    """What a module imports when it is imported: neither inside functions nor for type checkers only."""
    names: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    # `from gemel.checkpoint import dialects` inside that package needs the submodule, not the package
    package = module_name(file) if file.name == "__init__.py" else module_name(file).rpartition(".")[0]
    return names - {package}
