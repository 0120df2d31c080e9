"""Where a table of the paper is run again: every line that can be, beside the paper's figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gemel.contracts import Encoder, Vector
from gemel.data.places import data_folder
from gemel.errors import InvalidInput
from gemel.evaluate.scores import Scores, engine_of
from gemel.loading import load_reranker
from gemel.reproduce.lines import Line, Reproduction
from gemel.reproduce.measures import ARGUMENTS, MEASURES, STS_BENCHMARK, Measure, read_benchmark, score_pairs
from gemel.reproduce.notebook import Notebook
from gemel.reproduce.paper import TABLES, PaperRow
from gemel.reproduce.speeds import measure_speeds
from gemel.reproduce.stand_ins import CROSS_ENCODER, UNMEASURABLE, Cast, StandIn, open_encoder, short_name
from gemel.similarity import pairwise

if TYPE_CHECKING:  # torch is only imported where something is trained
    from gemel.reproduce.ablation import AblationPlan
    from gemel.train import TrainConfig

_TO_TRAIN = "no model to train was named: --row '{}=FOLDER' tunes it anew for each part, which takes hours"
_NO_SVR = "a regression on features of its own, which is not built here"
_NO_PAIRS = "cross-encoders are not trained in folds here"
_ABLATION = "an ablation of many trainings: name the raw transformer to train with --train FOLDER (hours)"


class Workbench:
    """Models, data and what has been measured so far."""

    def __init__(
        self,
        cast: Cast,
        *,
        data: str | Path | None = None,
        compute: Mapping[str, Any] | None = None,
        notebook: Notebook | None = None,
        work: Path = Path("out"),
        training: TrainConfig | None = None,
        ablation: AblationPlan | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        data_folder(data)  # one that was named must be there
        self.cast = cast
        self.data = data
        self.compute = dict(compute or {})
        self.notebook = notebook or Notebook()
        self.work = work  # where models that a table needs are trained
        self.tell = tell
        self.training = training  # its settings; None means the paper's
        self.ablation = ablation  # what table 6 trains; None means nothing

    def reproduce(self, number: int) -> Reproduction:
        """The table of this number; what is not at hand is said in its line, and no figure is made up."""
        if number not in TABLES:
            raise InvalidInput(f"the paper has no table {number}; expected 1 to {len(TABLES)}")
        table = TABLES[number]
        if number == 6:
            return self._ablation()
        if number == 7:
            return Reproduction(table, tuple(measure_speeds(self.cast, self.data, self.compute, self.tell)))
        measure = MEASURES[number]
        try:
            data, data_hash = measure.read(self.data)
        except InvalidInput as error:
            absent = [_missing(row, str(error)) for row in table.rows]
            absent += [Line(short_name(guest), missing=str(error)) for guest in self.cast.guests]
            return Reproduction(table, tuple(absent))
        lines = [self._line(row, number, measure, data, data_hash) for row in table.rows]
        lines += self._guests(measure, data, data_hash)
        return Reproduction(table, tuple(lines))

    def guest(self, number: int) -> StandIn:
        """The model that the user has brought."""
        return StandIn(self.cast.guests[number])

    def similarities(self, model: StandIn) -> tuple[Vector, Vector]:
        """The cosine and the gold score (0 to 5) of each test pair of the STS benchmark."""
        (benchmark,), _ = read_benchmark(self.data)
        encoder, gold = self._encoder(model, benchmark), benchmark.pairs.labels
        assert gold is not None, "scored pairs have scores"
        first, second = (encoder.encode(column) for column in benchmark.pairs.columns.values())
        return pairwise(first, second), (5 * gold).astype(np.float32)

    def _ablation(self) -> Reproduction:
        """Table 6, if a model to train was named."""
        if self.ablation is None:
            return Reproduction(TABLES[6], tuple(_missing(row, _ABLATION) for row in TABLES[6].rows))
        from gemel.reproduce.ablation import Ablation

        try:
            job = Ablation(self.ablation, data=self.data, work=self.work, tell=self.tell)
        except UNMEASURABLE as error:
            return Reproduction(TABLES[6], tuple(_missing(row, str(error)) for row in TABLES[6].rows))
        self.tell(f"table 6: {self.ablation.n_trainings} trainings in {job.place}, one after the other")
        return job.run()

    def _line(self, row: PaperRow, table: int, measure: Measure, data: Any, data_hash: str) -> Line:
        try:
            protocol, is_trained, _ = row.name.partition(": ")
            if is_trained:
                return self._trained_line(row, protocol, data)
            return self._measured_line(row, table, measure, data, data_hash)
        except UNMEASURABLE as error:
            return _missing(row, str(error))

    def _measured_line(self, row: PaperRow, table: int, measure: Measure, data: Any, data_hash: str) -> Line:
        models = self._models_of(row, table)
        if measure is STS_BENCHMARK and row.name.endswith(CROSS_ENCODER):
            runs = [[self._score_pairs(model, data, data_hash)] for model in models]
        else:
            runs = [self._scores(model, measure, data, data_hash) for model in models]
        return _of_runs(row.name, row, models, runs, measure)

    def _trained_line(self, row: PaperRow, protocol: str, data: Any) -> Line:
        if row.name.endswith(CROSS_ENCODER):
            return _missing(row, _NO_PAIRS)
        if "SVR" in row.name:
            return _missing(row, _NO_SVR)
        if not self.cast.is_named(row.name):
            return _missing(row, _TO_TRAIN.format(row.name))
        from gemel.reproduce.fold_training import evaluate_trained

        models = self.cast.models_for(row.name)
        runs = [
            [evaluate_trained(model.model, data, protocol, self.work, self.training, **self.compute)]
            for model in models
        ]
        return _of_runs(row.name, row, models, runs, ARGUMENTS)

    def _models_of(self, row: PaperRow, table: int) -> tuple[StandIn, ...]:
        if row.name == "tf-idf":
            return (StandIn("tf-idf", note="fitted on the evaluated texts"),)
        return self.cast.models_for(row.name, table)

    def _guests(self, measure: Measure, data: Any, data_hash: str) -> Iterator[Line]:
        for guest in self.cast.guests:
            model = StandIn(guest)
            try:
                scores = self._scores(model, measure, data, data_hash)
            except UNMEASURABLE as error:
                yield Line(short_name(guest), missing=str(error))
                continue
            yield _of_runs(short_name(guest), None, (model,), [scores], measure)

    def _scores(self, model: StandIn, measure: Measure, data: Any, data_hash: str) -> list[Scores]:
        encoder = self._encoder(model, data)
        key = Notebook.key(measure.name, encoder.fingerprint, engine_of(encoder), data_hash)
        kept = self.notebook.get(key)
        if kept is not None:
            return kept
        began = time.perf_counter()
        scores = measure.evaluate(encoder, data)
        self.tell(f"{measure.name}: {short_name(model.model)} in {time.perf_counter() - began:.1f} s")
        self.notebook.put(key, scores)
        return scores

    def _encoder(self, model: StandIn, data: Any) -> Encoder:
        if model.model == "tf-idf":
            from gemel.encoders import TfIdfEncoder

            return TfIdfEncoder.fit(text for column in data.pairs.columns.values() for text in column)
        return open_encoder(model, self.compute)

    def _score_pairs(self, model: StandIn, data: Any, data_hash: str) -> Scores:
        reranker = load_reranker(model.model, **self.compute)
        fingerprint = reranker.fingerprint
        key = Notebook.key("stsb", fingerprint, engine_of(reranker), data_hash)
        kept = self.notebook.get(key)
        scores = kept[0] if kept is not None else score_pairs(reranker, data[0], fingerprint)
        if kept is None:
            self.notebook.put(key, [scores])
        return scores


def _of_runs(
    name: str,
    row: PaperRow | None,
    models: Sequence[StandIn],
    runs: Sequence[Sequence[Scores]],
    measure: Measure,
) -> Line:
    """One line for all seeds: the mean, and the standard deviation of a sample."""
    figures = [measure.figures(run) for run in runs]
    mean = {column: float(np.mean([each[column] for each in figures])) for column in figures[0]}
    spread = {}
    if len(figures) > 1:
        spread = {column: float(np.std([each[column] for each in figures], ddof=1)) for column in mean}
    return Line(
        name=name,
        paper=row,
        model=", ".join(short_name(model.model) for model in models),
        source=models[0].model,
        note="; ".join(filter(None, (models[0].note, measure.remark(runs[0])))),
        figures=mean,
        spread=spread,
        scores=tuple(each for run in runs for each in run),
    )


def _missing(row: PaperRow, reason: str) -> Line:
    return Line(row.name, row, missing=reason)
