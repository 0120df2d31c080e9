"""Table 3's trained lines: a transformer is tuned on the other folds or topics, once for each part."""

from __future__ import annotations

import hashlib
from itertools import count
from pathlib import Path
from typing import Any

from gemel.checkpoint import read_encoder_folder
from gemel.checkpoint.resolving import resolve
from gemel.contracts import Encoder
from gemel.data.examples import Examples
from gemel.evaluate.afs import AfsData, cross_validate_afs
from gemel.evaluate.scores import Scores
from gemel.loading import load_encoder, load_trainable
from gemel.train import SentenceEncoderStep, TrainConfig, build_objective, train
from gemel.train.parallel import refuse_team

PROTOCOLS = {"10-fold": "ten folds", "cross-topic": "cross-topic"}
# Cosine regression as on STSb (section 4.2); the paper does not say how many epochs AFS took.
SETTINGS = TrainConfig(epochs=4, batch_size=16, learning_rate=2e-5)


def evaluate_trained(
    model: str, data: AfsData, protocol: str, work: Path, settings: TrainConfig | None = None, **compute: Any
) -> Scores:
    """The figures of encoders that start from a model and are trained on the other parts, kept in `work`."""
    refuse_team("training on the other parts")
    # Known by what goes into it: another model or other pairs of the same name must not find this one's work.
    goes_in = read_encoder_folder(resolve(model)).fingerprint + data.data_hash
    place = work / f"{protocol}-{hashlib.sha256(goes_in.encode()).hexdigest()[:12]}"
    numbers = count(1)

    def fit(pairs: Examples) -> Encoder:
        encoder = load_trainable(model)
        objective = build_objective("cosine", pairs.kind, dim=encoder.dim)
        step, part = SentenceEncoderStep(encoder, objective), place / f"part-{next(numbers)}"
        result = train(step, pairs, part, settings or SETTINGS, resume=True)
        return load_encoder(result.model, **compute)

    return cross_validate_afs(fit, data, protocol=PROTOCOLS[protocol], name="AFS")
