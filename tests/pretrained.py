"""A run of a step that trains on texts alone, for the tests of each."""

from __future__ import annotations

from pathlib import Path

import torch

from gemel.data.examples import Examples
from gemel.train import TrainConfig, train
from gemel.train.condenser import CondenserStep
from gemel.train.denoising import DenoisingStep


def pretrained(
    step: CondenserStep | DenoisingStep, examples: Examples, output: Path, config: TrainConfig
) -> tuple[Path, list[str]]:
    """The folder of the model, and the parts that have not moved; BERT's own pooler is in no loss."""
    before = {name: value.detach().clone() for name, value in step.named_parameters()}
    result = train(step, examples, output, config, show_progress=False)
    still = [name for name, value in step.named_parameters() if torch.equal(value, before[name])]
    return result.model, [name for name in still if ".pooler." not in name]
