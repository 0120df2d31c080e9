"""Who can stand in a line of the paper's tables: the model itself where it is published, else one like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gemel.contracts import Encoder
from gemel.errors import InvalidInput, InvalidModel, MissingExtra, ModelNotFound
from gemel.reproduce.paper import TABLES

CROSS_ENCODER = "(cross-encoder)"
# What makes a line missing, and not a command fail: the others have been measured, some for hours.
UNMEASURABLE = (ModelNotFound, MissingExtra, InvalidModel, InvalidInput)


@dataclass(frozen=True)
class StandIn:
    """A model for a line: its name or folder, how to pool it, and how it differs from the paper's."""

    model: str
    pooling: str | None = None
    note: str = ""


_HUB = "sentence-transformers/{}-mean-tokens"
# line of the paper -> the published model; a line that is not here has none that can be loaded
PUBLISHED: dict[str, StandIn] = {
    "GloVe average": StandIn(
        "glove-content", note="50 dimensions of 6B tokens, not 300 of 840B; no stop words"
    ),
    "mean word vectors": StandIn("glove-content", note="GloVe, 50 dimensions of 6B tokens; no stop words"),
    "BERT average": StandIn("google-bert/bert-base-uncased", "mean"),
    "BERT [CLS]": StandIn("google-bert/bert-base-uncased", "cls"),
    "Universal Sentence Encoder": StandIn("use-multilingual", note="the multilingual one, version 3"),
    "SBERT-NLI-base": StandIn(_HUB.format("bert-base-nli")),
    "SBERT-NLI-large": StandIn(_HUB.format("bert-large-nli")),
    "SRoBERTa-NLI-base": StandIn(_HUB.format("roberta-base-nli")),
    "SRoBERTa-NLI-large": StandIn(_HUB.format("roberta-large-nli")),
    "SBERT-NLI-STSb-base": StandIn(_HUB.format("bert-base-nli-stsb")),
    "SBERT-NLI-STSb-large": StandIn(_HUB.format("bert-large-nli-stsb")),
    "SRoBERTa-NLI-STSb-base": StandIn(_HUB.format("roberta-base-nli-stsb")),
    "SRoBERTa-NLI-STSb-large": StandIn(_HUB.format("roberta-large-nli-stsb")),
    "SBERT-WikiSec-base": StandIn(_HUB.format("bert-base-wikipedia-sections")),
    "SBERT-base": StandIn(_HUB.format("bert-base-nli")),
}
# (table, line) -> the model where that table wants another one: words like "what" tell questions apart
PUBLISHED_FOR = {(5, "GloVe average"): StandIn("glove", note="50 dimensions of 6B tokens, not 300 of 840B")}
_SPEED_LINES = ("SBERT-base, no smart batching", "SBERT-base, smart batching")  # named as SBERT-base
NO_WEIGHTS = {
    "InferSent (GloVe)": "its published weights are a pickle of its own program: train one with gemel train "
    "recipes/infersent.toml, then --row 'InferSent (GloVe)=FOLDER'",
    "fastText average": "no word vectors were named: --row 'fastText average=glove:FILE.vec'",
}
_TO_TRAIN = "no trained model was named: train one, then --row '{}=FOLDER'"


class Cast:
    """The models of a reproduction: the published ones, those that the user named for a line, and guests."""

    def __init__(
        self,
        rows: Mapping[str, str] | None = None,
        guests: Sequence[str] = (),
        *,
        may_download: bool = False,
    ) -> None:
        named = dict(rows or {})
        known = {
            row.name for table in TABLES.values() for row in table.rows if _is_taken(table.number, row.name)
        }
        known |= set(PUBLISHED)
        unknown = next((name for name in named if name not in known), None)
        if unknown is not None:
            raise InvalidInput(
                f"the paper's tables have no line {unknown!r}; expected one of {', '.join(sorted(known))}"
            )
        self.guests = tuple(guests)
        self._may_download = may_download
        self._named = {name: _named(name, model) for name, model in named.items()}

    def is_named(self, row: str) -> bool:
        """Whether the user has named a model for a line."""
        return row in self._named

    def models_for(self, row: str, table: int | None = None) -> tuple[StandIn, ...]:
        """The models of a line, one for each seed; a sentence that says what is missing is raised."""
        chosen = self._named.get(row) or PUBLISHED_FOR.get((table or 0, row)) or PUBLISHED.get(row)
        if chosen is None:
            raise ModelNotFound(NO_WEIGHTS.get(row) or _TO_TRAIN.format(row))
        if Path(chosen.model).expanduser().is_dir():
            folders = trained_models(Path(chosen.model).expanduser())
            return tuple(replace(chosen, model=str(folder)) for folder in folders)
        from gemel.loading import check_encoder

        check_encoder(chosen.model, may_download=self._may_download)
        return (chosen,)


def _is_taken(table: int, row: str) -> bool:
    """Whether a model that the user names for this line would be measured."""
    is_in_folds = row.startswith(("10-fold", "cross-topic"))
    is_no_encoder = is_in_folds and (row.endswith(CROSS_ENCODER) or "SVR" in row)
    return table != 6 and row not in ("tf-idf", *_SPEED_LINES) and not is_no_encoder


def open_encoder(model: StandIn, compute: Mapping[str, Any]) -> Encoder:
    """The encoder of a stand-in; a baseline computes in its own way."""
    from gemel.loading import is_baseline, load_encoder

    return load_encoder(model.model, pooling=model.pooling, **({} if is_baseline(model.model) else compute))


def _named(row: str, model: str) -> StandIn:
    """What the user has named: the pooling is that of the line."""
    published = PUBLISHED.get(row)
    note = published.note if published is not None and published.model == model else "in its place"
    return StandIn(model, None if published is None else published.pooling, note)


def trained_models(folder: Path) -> list[Path]:
    """The models in a folder: itself, or the last stage of each seed that `gemel train` has left in it."""
    if (folder / "config.json").is_file() or (folder / "modules.json").is_file():
        return [folder]
    seeds = sorted(folder.glob("seed-*"), key=_number) or [folder]
    found = [
        (sorted(seed.glob("stage-*/model"), key=_number_of_parent) or [seed / "model"])[-1] for seed in seeds
    ]
    absent = next((model for model in found if not model.is_dir()), None)
    if absent is not None:
        raise ModelNotFound(f"{absent} is not there; expected a model folder or what gemel train has written")
    if len({model.relative_to(seed) for model, seed in zip(found, seeds, strict=True)}) > 1:
        raise ModelNotFound(
            f"the seeds in {folder} have not come to the same stage; let gemel train --resume end them"
        )
    return found


def _number(path: Path) -> int:
    digits = path.name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0


def _number_of_parent(path: Path) -> int:
    return _number(path.parent)


def short_name(model: str) -> str:
    """The end of a path, which is what tells models apart: a run and its seed; names stay as they are."""
    path = Path(model)
    if not path.is_dir():
        return model
    whole = path.resolve().parts
    parts = [part for part in whole if part != "model" and not part.startswith("stage-")] or whole
    is_seed = len(parts) > 1 and parts[-1].startswith("seed-")
    return "/".join(parts[-2 if is_seed else -1 :])
