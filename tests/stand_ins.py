"""Small models that stand in for real ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

VOCABULARY = """
the a man woman child dog cat is are was eating food plays sleeps runs guitar piano horse on in of and to
with house garden street cold warm red green blue big small old new not one two three happy sad . , ! ?
"""
WORDS = VOCABULARY.split()


class ToyEncoder:
    """Hashed words in 16 dimensions: texts that share words are similar."""

    dim = 16
    fingerprint = "toy-16"

    def __init__(self) -> None:
        self.n_encoded = 0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.n_encoded += len(texts)
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row] += _word_vector(word)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def _word_vector(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(ToyEncoder.dim).astype(np.float32)


# architecture -> transformers' config class, model class and settings of a small model
SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
ARCHITECTURES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertConfig", "BertModel", {**SIZE, "max_position_embeddings": 40}),
    "electra": (
        "ElectraConfig",
        "ElectraModel",
        {**SIZE, "embedding_size": 16, "max_position_embeddings": 40},
    ),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertModel",
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 40},
    ),
    "roberta": ("RobertaConfig", "RobertaModel", {**SIZE, "max_position_embeddings": 42}),
    "xlm-roberta": ("XLMRobertaConfig", "XLMRobertaModel", {**SIZE, "max_position_embeddings": 42}),
    "mpnet": ("MPNetConfig", "MPNetModel", {**SIZE, "max_position_embeddings": 42}),
}
ROBERTA_LIKE = ("roberta", "xlm-roberta", "mpnet")


def make_tiny_model(architecture: str, folder: Path, seed: int = 0, max_tokens: int = 40) -> None:
    """A plain Hugging Face folder: seeded random weights and a tokenizer that knows WORDS."""
    import torch
    import transformers

    tokenizer = _tokenizer(architecture)
    config_class, model_class, settings = ARCHITECTURES[architecture]
    config = getattr(transformers, config_class)(
        vocab_size=tokenizer.get_vocab_size(),
        pad_token_id=tokenizer.token_to_id(_specials(architecture)[0]),
        **settings,
    )
    torch.manual_seed(seed)
    model = getattr(transformers, model_class)(config)
    with torch.no_grad():  # the usual initialisation is so small that all vectors would look alike
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(8)
    model.save_pretrained(folder)
    pad, unk, cls, sep, mask = _specials(architecture)
    inputs = ["input_ids", "attention_mask"]
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=max_tokens,
        pad_token=pad,
        unk_token=unk,
        cls_token=cls,
        sep_token=sep,
        mask_token=mask,
        model_input_names=[*inputs, "token_type_ids"] if architecture in ("bert", "electra") else inputs,
    ).save_pretrained(folder)


def _specials(architecture: str) -> tuple[str, str, str, str, str]:
    if architecture in ROBERTA_LIKE:
        return "<pad>", "<unk>", "<s>", "</s>", "<mask>"
    return "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"


def _tokenizer(architecture: str) -> Any:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    pad, unk, cls, sep, mask = _specials(architecture)
    if architecture == "roberta":
        tokenizer = Tokenizer(models.BPE(unk_token=unk))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=[cls, pad, sep, unk, mask],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
    elif architecture == "xlm-roberta":
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
        )
        trainer = trainers.UnigramTrainer(
            vocab_size=120, special_tokens=[cls, pad, sep, unk, mask], unk_token=unk, show_progress=False
        )
    else:
        specials = [cls, pad, sep, unk, mask] if architecture == "mpnet" else [pad, unk, cls, sep, mask]
        tokenizer = Tokenizer(models.WordPiece(_word_pieces(specials), unk_token=unk))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = None
    if trainer is not None:
        sentences = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))]
        tokenizer.train_from_iterator(sentences, trainer)
    if architecture == "xlm-roberta":
        tokenizer.model = _in_one_order(tokenizer)
    pair = (
        f"{cls} $A {sep} {sep} $B {sep}" if architecture in ROBERTA_LIKE else f"{cls} $A {sep} $B:1 {sep}:1"
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=pair,
        special_tokens=[(cls, tokenizer.token_to_id(cls)), (sep, tokenizer.token_to_id(sep))],
    )
    return tokenizer


def _word_pieces(specials: list[str]) -> dict[str, int]:
    """WORDS, how they begin and end, and letters for all else: a trained vocabulary is another every time."""
    letters = sorted(set("".join(WORDS)))
    begun = sorted({word[:2] for word in WORDS} - set(letters))
    ended = sorted({f"##{word[-2:]}" for word in WORDS if len(word) > 3})
    pieces = [*specials, *letters, *(f"##{letter}" for letter in letters), *begun, *ended, *sorted(WORDS)]
    return {piece: place for place, piece in enumerate(dict.fromkeys(pieces))}


def _in_one_order(tokenizer: Any) -> Any:
    """A trained unigram model with its pieces in the same order every time; only last bits differ before."""
    from tokenizers import models

    trained = json.loads(tokenizer.to_str())["model"]
    pieces = [(piece, round(score, 6)) for piece, score in trained["vocab"]]
    n_specials = sum(score == 0 for _, score in pieces)
    rest = sorted(pieces[n_specials:], key=lambda each: (-each[1], each[0]))
    return models.Unigram([*pieces[:n_specials], *rest], trained["unk_id"])


def sentences(n: int, seed: int = 0, max_words: int = 30) -> list[str]:
    """Nonsense of every length, made of WORDS."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, max_words + 1, n)
    return [" ".join(generator.choice(WORDS, length)) for length in lengths]


def write_json(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


def read_json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))
