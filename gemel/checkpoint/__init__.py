"""The model folder: the only thing that training hands to serving."""

from gemel.checkpoint.classifier import (
    ClassifierFolder,
    EncoderReference,
    is_classifier_folder,
    read_classifier_folder,
    save_classifier_folder,
)
from gemel.checkpoint.dialects import first_position
from gemel.checkpoint.folder import (
    ModelFolder,
    RerankerFolder,
    is_reranker_folder,
    read_encoder_folder,
    read_licence,
    read_reranker_folder,
)
from gemel.checkpoint.head import Head, read_head
from gemel.checkpoint.saving import (
    check_free,
    recover,
    save_encoder_folder,
    save_reranker_folder,
    special_tokens_note,
    whole_folder,
)
from gemel.checkpoint.spec import POOLING_MODES, Dense, EncoderSpec, Normalise, Pooling
from gemel.checkpoint.static import StaticFolder, is_static_folder, read_static_folder, save_static_folder
from gemel.checkpoint.weights import WeightFile, open_weights, read_weights

__all__ = [
    "POOLING_MODES",
    "ClassifierFolder",
    "Dense",
    "EncoderReference",
    "EncoderSpec",
    "Head",
    "ModelFolder",
    "Normalise",
    "Pooling",
    "RerankerFolder",
    "StaticFolder",
    "WeightFile",
    "check_free",
    "first_position",
    "is_classifier_folder",
    "is_reranker_folder",
    "is_static_folder",
    "open_weights",
    "read_classifier_folder",
    "read_encoder_folder",
    "read_head",
    "read_licence",
    "read_reranker_folder",
    "read_static_folder",
    "read_weights",
    "recover",
    "save_classifier_folder",
    "save_encoder_folder",
    "save_reranker_folder",
    "save_static_folder",
    "special_tokens_note",
    "whole_folder",
]
