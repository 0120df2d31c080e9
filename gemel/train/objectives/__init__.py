"""What training asks of the vectors: small classes that take embeddings and labels, never the model."""

from gemel.train.objectives.classification import PairClassification, Softmax
from gemel.train.objectives.concatenation import (
    CONCATENATIONS,
    PAPER_CONCATENATION,
    checked_concatenation,
    concatenate,
)
from gemel.train.objectives.contrastive import InBatchContrastive
from gemel.train.objectives.objective import Objective
from gemel.train.objectives.registry import CROSS_OBJECTIVES, OBJECTIVES, build_objective, fitting
from gemel.train.objectives.regression import CosineRegression, FeedForwardRegression, PairRegression
from gemel.train.objectives.triplets import Triplet

__all__ = [
    "CONCATENATIONS",
    "CROSS_OBJECTIVES",
    "OBJECTIVES",
    "PAPER_CONCATENATION",
    "CosineRegression",
    "FeedForwardRegression",
    "InBatchContrastive",
    "Objective",
    "PairClassification",
    "PairRegression",
    "Softmax",
    "Triplet",
    "build_objective",
    "checked_concatenation",
    "concatenate",
    "fitting",
]
