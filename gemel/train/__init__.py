"""Training: the objectives of the paper and one readable loop."""

from gemel.train.condenser import CondenserStep
from gemel.train.config import TrainConfig
from gemel.train.denoising import DenoisingStep
from gemel.train.distillation import DistillationStep
from gemel.train.lora import Lora
from gemel.train.mixing import MixedExamples, MixedObjective, MultiTaskStep
from gemel.train.objectives import OBJECTIVES, build_objective
from gemel.train.parallel import Team, join_team
from gemel.train.result import TrainResult
from gemel.train.steps import CrossEncoderStep, SentenceEncoderStep
from gemel.train.trainer import train

__all__ = [
    "OBJECTIVES",
    "CondenserStep",
    "CrossEncoderStep",
    "DenoisingStep",
    "DistillationStep",
    "Lora",
    "MixedExamples",
    "MixedObjective",
    "MultiTaskStep",
    "SentenceEncoderStep",
    "Team",
    "TrainConfig",
    "TrainResult",
    "build_objective",
    "join_team",
    "train",
]
