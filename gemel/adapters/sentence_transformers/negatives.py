"""Hard negatives under sentence-transformers' name and by its rules, found by gemel's exact search.

`gemel`'s own mining of negatives goes by rules of its own; this one is for programs that know these.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.adapters.sentence_transformers.arguments import refuse_rest
from gemel.adapters.sentence_transformers.measures import measure_named
from gemel.adapters.sentence_transformers.tensors import array, rows
from gemel.errors import InvalidInput
from gemel.similarity import pairwise, top_k

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
Columns = dict[str, list[Any]]
# The largest and the least score, and two margins to the positive.
Bounds = tuple[float | None, float | None, float | None, float | None]

FORMATS = ("triplet", "n-tuple", "labeled-pair", "labeled-list")
SAMPLINGS = ("top", "random")
# What only says how the search is made and told of.
WITHOUT_EFFECT = ("cache_folder", "faiss_batch_size", "use_faiss", "use_multi_process", "verbose")
NO_ROW = -1
DROPPED = np.float32(-np.inf)

logger = logging.getLogger(__name__)


def mine_hard_negatives(
    dataset: Any,
    model: Any,
    anchor_column_name: str | None = None,
    positive_column_name: str | None = None,
    corpus: list[str] | None = None,
    cross_encoder: Any = None,
    range_min: int = 0,
    range_max: int | None = None,
    max_score: float | None = None,
    min_score: float | None = None,
    absolute_margin: float | None = None,
    relative_margin: float | None = None,
    num_negatives: int = 3,
    sampling_strategy: str = "top",
    query_prompt_name: str | None = None,
    query_prompt: str | None = None,
    corpus_prompt_name: str | None = None,
    corpus_prompt: str | None = None,
    include_positives: bool = False,
    output_format: str = "triplet",
    output_scores: bool = False,
    batch_size: int = 32,
    **others: Any,
) -> Any:
    """The pairs of a dataset with texts that are like the anchor and not meant, in one of FORMATS.

    The dataset is one of `datasets`, and so is what comes back; or it is a dict of columns, as is then what
    comes back. `as_triplets` and `margin` are older words for `output_format` and `absolute_margin`.
    """
    output_format, absolute_margin = _by_older_words(others, output_format, absolute_margin)
    names, given = _columns(dataset, anchor_column_name, positive_column_name)
    pairs = _Pairs(*given, corpus or [])
    bounds = (max_score, min_score, absolute_margin, relative_margin)
    n_looked_at = num_negatives * (10 if _may_drop(bounds, cross_encoder is not None) else 1)
    range_max = range_min + n_looked_at + pairs.max_positives if range_max is None else range_max
    output_format = "n-tuple" if include_positives else output_format
    _check(num_negatives, (range_min, range_max), sampling_strategy, output_format)
    prompts = {"prompt_name": query_prompt_name, "prompt": query_prompt}
    corpus_prompts = {"prompt_name": corpus_prompt_name, "prompt": corpus_prompt}
    found = _nearest(model, pairs, range_max + pairs.max_positives, (prompts, corpus_prompts), batch_size)
    if cross_encoder is not None and any(bound is not None for bound in bounds):
        found = _reread(cross_encoder, pairs, found, batch_size)
    found = _within(found if include_positives else _without_positives(found, pairs), pairs, bounds)
    chosen = _chosen(found, (range_min, range_max), num_negatives, sampling_strategy == "random")
    logger.info(
        "%d negatives were found for %d anchors", np.isfinite(chosen.scores).sum(), len(pairs.queries)
    )
    made = _LAYOUTS[output_format](names, pairs, chosen, output_scores)
    return type(dataset).from_dict(made) if hasattr(type(dataset), "from_dict") else made


class _Pairs:
    """Distinct queries, distinct texts, and which texts are each query's positives."""

    def __init__(self, anchors: list[str], positives: list[str], corpus: list[str]) -> None:
        self.texts = list(dict.fromkeys([*corpus, *positives]))
        self.queries = list(dict.fromkeys(anchors))
        self.max_positives = max(Counter(anchors).values())
        place = {text: row for row, text in enumerate(self.texts)}
        by_query: dict[str, dict[int, None]] = {query: {} for query in self.queries}
        for anchor, positive in zip(anchors, positives, strict=True):
            by_query[anchor][place[positive]] = None
        self.positives = [list(of_query) for of_query in by_query.values()]
        self.owners = np.repeat(np.arange(len(self.queries)), [len(each) for each in self.positives])
        self.flat = np.array([row for each in self.positives for row in each], np.int64)


@dataclass(frozen=True)
class _Candidates:
    """For each query rows of texts and their scores, best first; and the scores of its positives."""

    rows: Rows  # (queries, k), NO_ROW where there are no more
    scores: Scores  # (queries, k), DROPPED where a row is none to take
    positive: Scores  # (pairs,), by query


# Steps -----------------------------------------------------------------------------------------------------


def _by_older_words(
    others: dict[str, Any], output_format: str, absolute_margin: float | None
) -> tuple[str, float | None]:
    """The format and the margin, by their older words where these were given; no others may be left."""
    as_triplets, margin = others.pop("as_triplets", None), others.pop("margin", None)
    refuse_rest("mine_hard_negatives", others, WITHOUT_EFFECT)
    if as_triplets is not None:
        output_format = "triplet" if as_triplets else "n-tuple"
    return output_format, absolute_margin if margin is None else margin


def _columns(
    dataset: Any, anchor: str | None, positive: str | None
) -> tuple[tuple[str, str], tuple[list[str], list[str]]]:
    """The names and the texts of the two columns, which are the first two unless they are named."""
    known = list(getattr(dataset, "column_names", None) or dataset)
    first = anchor if anchor in known else known[0] if known else None
    second = positive if positive in known else known[1] if len(known) > 1 else None
    if first is None or second is None:
        raise InvalidInput(
            f"the dataset has the columns {known}; expected anchors and positives: two of them"
        )
    anchors, positives = list(dataset[first]), list(dataset[second])
    if not anchors:
        raise InvalidInput("the dataset is empty; give pairs of an anchor and its positive")
    return (first, second), (anchors, positives)


def _check(num_negatives: int, places: tuple[int, int], sampling: str, output_format: str) -> None:
    first, last = places
    if num_negatives < 1:
        raise InvalidInput(f"num_negatives is {num_negatives!r}; expected at least 1")
    if first < 0 or num_negatives > last - first:
        raise InvalidInput(
            f"{num_negatives} negatives were asked for from places {first} to {last}; expected as many "
            "places as negatives: raise range_max, or lower range_min or num_negatives"
        )
    for name, value, known in (
        ("output_format", output_format, FORMATS),
        ("sampling_strategy", sampling, SAMPLINGS),
    ):
        if value not in known:
            raise InvalidInput(f"{name} is {value!r}; expected one of {', '.join(known)}")


def _may_drop(bounds: Bounds, is_reread: bool) -> bool:
    """Whether the bounds may leave fewer than were found, so that more have to be looked at."""
    max_score, min_score, absolute, relative = bounds
    counted = (max_score, absolute, relative, min_score if is_reread else None)
    return any(bound is not None for bound in counted)


def _nearest(
    model: Any, pairs: _Pairs, k: int, prompts: tuple[dict[str, Any], dict[str, Any]], batch_size: int
) -> _Candidates:
    """The k texts most like each query, by the model's measure on vectors of unit length."""
    choices = {"normalize_embeddings": True, "batch_size": batch_size, "show_progress_bar": False}
    queries = rows(model.encode_query(pairs.queries, **prompts[0], **choices))
    texts = rows(model.encode_document(pairs.texts, **prompts[1], **choices))
    measure = measure_named(model.similarity_fn_name)
    hits = top_k(queries, texts, min(k, len(texts)), measure)
    missing = ((0, 0), (0, k - hits.ids.shape[1]))
    return _Candidates(
        np.pad(hits.ids, missing, constant_values=NO_ROW),
        np.pad(hits.scores, missing, constant_values=DROPPED),
        pairwise(queries[pairs.owners], texts[pairs.flat], measure),
    )


def _reread(cross_encoder: Any, pairs: _Pairs, found: _Candidates, batch_size: int) -> _Candidates:
    """The same candidates and positives with the scores of a cross-encoder."""
    places = np.argwhere(found.rows != NO_ROW)
    rows_of = found.rows[tuple(places.T)]
    asked = [
        (pairs.queries[query], pairs.texts[row]) for (query, _), row in zip(places, rows_of, strict=True)
    ]
    own = [
        (pairs.queries[query], pairs.texts[row]) for query, row in zip(pairs.owners, pairs.flat, strict=True)
    ]
    scores = found.scores.copy()
    scores[tuple(places.T)] = array(cross_encoder.predict(asked, batch_size=batch_size))
    positive = array(cross_encoder.predict(own, batch_size=batch_size)).astype(np.float32)
    return _Candidates(found.rows, scores, positive)


def _without_positives(found: _Candidates, pairs: _Pairs) -> _Candidates:
    is_positive = [np.isin(row, own) for row, own in zip(found.rows, pairs.positives, strict=True)]
    return _dropping(found, np.stack(is_positive))


def _within(found: _Candidates, pairs: _Pairs, bounds: Bounds) -> _Candidates:
    """The candidates within the bounds; a margin is to the least similar of a query's positives."""
    max_score, min_score, absolute, relative = bounds
    least = np.full(len(pairs.queries), np.inf, np.float32)
    np.minimum.at(least, pairs.owners, found.positive)
    scores, floor = found.scores, least[:, None]
    too_near = np.zeros(scores.shape, np.bool_)
    if absolute is not None:
        too_near |= scores + np.float32(absolute) > floor
    if relative is not None:
        too_near |= scores > floor - np.abs(floor) * np.float32(relative)
    if max_score is not None:
        too_near |= scores > max_score
    if min_score is not None:
        too_near |= scores < min_score
    return _dropping(found, too_near)


def _dropping(found: _Candidates, which: npt.NDArray[np.bool_]) -> _Candidates:
    return _Candidates(found.rows, np.where(which, DROPPED, found.scores), found.positive)


def _chosen(found: _Candidates, places: tuple[int, int], n: int, at_random: bool) -> _Candidates:
    """Of each query the best n between two places, or n at random, by `random.sample` as there."""
    first, last = places
    order = np.argsort(-found.scores, axis=1, kind="stable")[:, first:last]
    if at_random:
        scores = np.take_along_axis(found.scores, order, 1)
        n_left = np.maximum(np.isfinite(scores).sum(axis=1), n).tolist()
        drawn = np.array([sorted(random.sample(range(each), k=n)) for each in n_left])
        order = np.take_along_axis(order, drawn, 1)
    order = order[:, :n]
    rows_of, scores = np.take_along_axis(found.rows, order, 1), np.take_along_axis(found.scores, order, 1)
    return _Candidates(rows_of, scores, found.positive)


# Layouts ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Case:
    """An anchor, one of its positives, and the negatives that were found for it."""

    anchor: str
    positive: str
    positive_score: float
    negatives: list[str]
    negative_scores: list[float]


def _cases(pairs: _Pairs, chosen: _Candidates) -> list[_Case]:
    cases = []
    for number, (query, row) in enumerate(zip(pairs.owners.tolist(), pairs.flat.tolist(), strict=True)):
        is_taken = np.isfinite(chosen.scores[query])
        negatives = [pairs.texts[each] for each in chosen.rows[query][is_taken].tolist()]
        scores = chosen.scores[query][is_taken].tolist()
        own = float(chosen.positive[number])
        cases.append(_Case(pairs.queries[query], pairs.texts[row], own, negatives, scores))
    return cases


def _triplets(names: tuple[str, str], pairs: _Pairs, chosen: _Candidates, with_scores: bool) -> Columns:
    found = [
        (case.anchor, case.positive, negative, [case.positive_score, score])
        for case in _cases(pairs, chosen)
        for negative, score in zip(case.negatives, case.negative_scores, strict=True)
    ]
    return _table((*names, "negative"), found, with_scores)


def _tuples(names: tuple[str, str], pairs: _Pairs, chosen: _Candidates, with_scores: bool) -> Columns:
    n = chosen.rows.shape[1]
    found = [
        (case.anchor, case.positive, *case.negatives, [case.positive_score, *case.negative_scores])
        for case in _cases(pairs, chosen)
        if len(case.negatives) == n
    ]
    return _table((*names, *(f"negative_{number}" for number in range(1, n + 1))), found, with_scores)


def _labelled_pairs(names: tuple[str, str], pairs: _Pairs, chosen: _Candidates, with_scores: bool) -> Columns:
    found: list[tuple[Any, ...]] = []
    cases = _cases(pairs, chosen)
    for number, case in enumerate(cases):
        found.append((case.anchor, case.positive, case.positive_score if with_scores else 1))
        if number + 1 == len(cases) or cases[number + 1].anchor != case.anchor:
            scores = case.negative_scores if with_scores else [0] * len(case.negatives)
            found += [(case.anchor, *each) for each in zip(case.negatives, scores, strict=True)]
    return _table((*names, "score" if with_scores else "label"), found)


def _labelled_lists(names: tuple[str, str], pairs: _Pairs, chosen: _Candidates, with_scores: bool) -> Columns:
    found = [
        (
            case.anchor,
            [case.positive, *case.negatives],
            [case.positive_score, *case.negative_scores] if with_scores else [1] + [0] * len(case.negatives),
        )
        for case in _cases(pairs, chosen)
        if case.negatives
    ]
    return _table((*names, "scores" if with_scores else "labels"), found)


def _table(
    names: Sequence[str], found: Sequence[tuple[Any, ...]], with_scores: bool | None = None
) -> Columns:
    """Rows as columns; with_scores says whether their last value is kept, as `scores`."""
    named = [*names, "scores"] if with_scores else names
    return {name: [row[place] for row in found] for place, name in enumerate(named)}


_LAYOUTS = {
    "triplet": _triplets,
    "n-tuple": _tuples,
    "labeled-pair": _labelled_pairs,
    "labeled-list": _labelled_lists,
}
