"""The report of a reproduction: one page for people, one file for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gemel.errors import WriteFailed
from gemel.reproduce.lines import Reproduction
from gemel.reproduce.page import page_of
from gemel.version import VERSION

PAGE, DATA = "report.html", "report.json"


def write_report(
    folder: Path, reproductions: Sequence[Reproduction], pictures: Mapping[str, str], facts: Mapping[str, str]
) -> Path:
    """Write `report.html` and `report.json`, whole or not at all; the page's path.

    `pictures` are SVG texts by title; a picture's `desc` becomes its caption.
    """
    values = {
        "gemel": VERSION,
        "facts": dict(facts),
        "reproductions": [reproduction.to_dict() for reproduction in reproductions],
    }
    page = page_of(reproductions, pictures, facts)
    data = json.dumps(_plain(values), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    _write_whole(folder, {DATA: data, PAGE: page})
    return folder / PAGE


def _write_whole(folder: Path, texts: Mapping[str, str]) -> None:
    """All of the files, or none: nothing takes its place before everything is on the disk."""
    drafts = {folder / f"{name}.draft": folder / name for name in texts}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for draft, text in zip(drafts, texts.values(), strict=True):
            draft.write_text(text, encoding="utf-8")
        for draft, target in drafts.items():
            draft.replace(target)
    except OSError as error:
        for draft in drafts:
            if draft.is_file():
                draft.unlink()
        raise WriteFailed(
            f"the report cannot be written into {folder} ({error.strerror or error}); an earlier one there "
            "stays as it was, so make room or name another folder"
        ) from error


def _plain(value: Any) -> Any:
    """The value with null for what is no number: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
