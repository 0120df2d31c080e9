"""Table 3's trained lines: a transformer is tuned on the other folds or topics, once for each part."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from gemel.contracts import Encoder
from gemel.data.examples import Examples
from gemel.evaluate.afs import AfsData, cross_validate_afs
from gemel.evaluate.scores import Scores
from gemel.loading import load_encoder, load_trainable
from gemel.train import SentenceEncoderStep, TrainConfig, build_objective, train

PROTOCOLS = {"10-fold": "ten folds", "cross-topic": "cross-topic"}
# Cosine regression as on STSb (section 4.2); the paper does not say how many epochs AFS took.
SETTINGS = TrainConfig(epochs=4, batch_size=16, learning_rate=2e-5)


def evaluate_trained(
    model: str, data: AfsData, protocol: str, work: Path, settings: TrainConfig | None = None, **compute: Any
) -> Scores:
    """The figures of encoders that start from a model and are trained on the other parts, kept in `work`."""
    numbers = count(1)

    def fit(pairs: Examples) -> Encoder:
        encoder = load_trainable(model)
        objective = build_objective("cosine", pairs.kind, dim=encoder.dim)
        place = work / f"part-{next(numbers)}"
        result = train(
            SentenceEncoderStep(encoder, objective), pairs, place, settings or SETTINGS, resume=True
        )
        return load_encoder(result.model, **compute)

    return cross_validate_afs(fit, data, protocol=PROTOCOLS[protocol], name="AFS")
