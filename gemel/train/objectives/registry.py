"""Objectives by name, and the one that fits the data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from gemel.errors import InvalidInput
from gemel.train.objectives.classification import PairClassification, Softmax, TextSoftmax
from gemel.train.objectives.contrastive import InBatchContrastive, OnlineContrastive, SupervisedContrastive
from gemel.train.objectives.matryoshka import Matryoshka
from gemel.train.objectives.objective import Objective
from gemel.train.objectives.ranking import CoSent
from gemel.train.objectives.regression import CosineRegression, FeedForwardRegression, PairRegression
from gemel.train.objectives.triplets import BatchHardTriplet, Triplet
from gemel.train.settings import check_plain_types

# The first that fits a kind of examples is the one inferred for it.
_FOR_VECTORS: tuple[type[Objective], ...] = (
    *(Softmax, CosineRegression, InBatchContrastive, Triplet, FeedForwardRegression, CoSent),
    *(OnlineContrastive, BatchHardTriplet, SupervisedContrastive, TextSoftmax),
)
_FOR_PAIRS: tuple[type[Objective], ...] = (PairRegression, PairClassification)
PRETRAINED_BY = ("denoising", "cocondenser")  # of texts alone, which are steps of their own
OBJECTIVES = {objective.name: objective for objective in _FOR_VECTORS}
CROSS_OBJECTIVES = {objective.name: objective for objective in _FOR_PAIRS}


def fitting(kind: str, objectives: dict[str, type[Objective]]) -> list[str]:
    """The names of the objectives that eat examples of a kind."""
    return [name for name, objective in objectives.items() if kind in objective.kinds]


def build_objective(
    name: str | None,
    kind: str,
    *,
    dim: int,
    n_labels: int = 0,
    label_names: Sequence[str] = (),
    cross_encoder: bool = False,
    **settings: Any,
) -> Objective:
    """The named objective, or the usual one for this kind of examples; `matryoshka` wraps any."""
    table = CROSS_OBJECTIVES if cross_encoder else OBJECTIVES
    fit = fitting(kind, table)
    if name is None and not fit:
        eaten = dict.fromkeys(each for objective in table.values() for each in objective.kinds)
        learner = "a cross-encoder" if cross_encoder else "an encoder"
        raise InvalidInput(
            f"the data holds {kind}, from which {learner} cannot learn; expected {', '.join(eaten)}"
        )
    if n_labels == 1 and kind == "classified texts":
        raise InvalidInput(
            f"all of the {kind} are of one class, from which nothing can be learnt; expected two"
        )
    name = name or fit[0]
    if name not in table:
        _refuse_unknown(name, cross_encoder)
    if name not in fit:
        raise InvalidInput(
            f"the objective {name!r} eats {' or '.join(table[name].kinds)} and the data holds {kind}; "
            f"for these choose {' or '.join(fit) or 'another kind of model'}"
        )
    chosen, inner = table[name], dict(settings)
    matryoshka = inner.pop("matryoshka", None)
    _check_settings(name, chosen, inner)

    def make(dimensions: int) -> Objective:
        told = {"dim": dimensions, "n_labels": n_labels, "label_names": label_names}
        try:
            return chosen(**{need: told[need] for need in chosen.needs}, **inner)
        except TypeError as error:
            raise InvalidInput(
                f"the settings of the objective {name!r} are of wrong types: {error}"
            ) from None

    return make(dim) if matryoshka is None else _wrapped(make, dim, matryoshka, cross_encoder)


def _refuse_unknown(name: str, cross_encoder: bool) -> NoReturn:
    whose = dict.fromkeys(OBJECTIVES, "an encoder's") | dict.fromkeys(CROSS_OBJECTIVES, "a cross-encoder's")
    known = CROSS_OBJECTIVES if cross_encoder else [*OBJECTIVES, *PRETRAINED_BY]
    raise InvalidInput(
        f"the objective {name!r} is {whose.get(name, 'unknown')}; choose from {', '.join(known)}"
    )


def _check_settings(name: str, chosen: type[Objective], settings: Mapping[str, Any]) -> None:
    parameters = inspect.signature(chosen).parameters.values()
    named = [each.name for each in parameters if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    known = [setting for setting in named if setting not in chosen.needs]
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise InvalidInput(
            f"the objective {name!r} does not take these settings: {', '.join(unknown)}; "
            f"it takes {', '.join([*known, 'matryoshka'])}"
        )
    check_plain_types(f"the objective {name!r}", chosen, settings)


def _wrapped(make: Callable[[int], Objective], dim: int, settings: Any, cross_encoder: bool) -> Matryoshka:
    if cross_encoder:
        raise InvalidInput("a cross-encoder gives scores, no vectors; leave matryoshka out")
    if not isinstance(settings, Mapping) or not {"dimensions"} <= set(settings) <= {"dimensions", "weights"}:
        raise InvalidInput(
            f"matryoshka is {settings!r}; expected dimensions = [...], and weights = [...] where they differ"
        )
    try:
        return Matryoshka(make, dim, **settings)
    except TypeError as error:
        raise InvalidInput(f"matryoshka is {settings!r}, which has wrong types: {error}") from None
