"""What training asks of the vectors: small classes that take embeddings and labels, never the model."""

from gemel.train.objectives.classification import PairClassification, Softmax, TextSoftmax
from gemel.train.objectives.concatenation import (
    CONCATENATIONS,
    PAPER_CONCATENATION,
    checked_concatenation,
    concatenate,
)
from gemel.train.objectives.contrastive import InBatchContrastive, OnlineContrastive, SupervisedContrastive
from gemel.train.objectives.matryoshka import Matryoshka
from gemel.train.objectives.objective import Objective, check_eaten
from gemel.train.objectives.ranking import CoSent
from gemel.train.objectives.registry import CROSS_OBJECTIVES, OBJECTIVES, build_objective, fitting
from gemel.train.objectives.regression import CosineRegression, FeedForwardRegression, PairRegression
from gemel.train.objectives.triplets import BatchHardTriplet, Triplet

__all__ = [
    "CONCATENATIONS",
    "CROSS_OBJECTIVES",
    "OBJECTIVES",
    "PAPER_CONCATENATION",
    "BatchHardTriplet",
    "CoSent",
    "CosineRegression",
    "FeedForwardRegression",
    "InBatchContrastive",
    "Matryoshka",
    "Objective",
    "OnlineContrastive",
    "PairClassification",
    "PairRegression",
    "Softmax",
    "SupervisedContrastive",
    "TextSoftmax",
    "Triplet",
    "build_objective",
    "check_eaten",
    "checked_concatenation",
    "concatenate",
    "fitting",
]
