"""SentenceTransformer on gemel's engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.adapters.sentence_transformers.arguments import (
    merged,
    refuse_rest,
    take_computing,
    take_folder,
)
from gemel.adapters.sentence_transformers.card import ModelCardData
from gemel.adapters.sentence_transformers.measures import FUNCTIONS, SimilarityFunction, measure_named
from gemel.adapters.sentence_transformers.parts import Part, StaticEmbedding, parts_of
from gemel.adapters.sentence_transformers.placement import Placed
from gemel.adapters.sentence_transformers.quantisation import checked_precision, quantize_embeddings
from gemel.adapters.sentence_transformers.saving import save_among_others
from gemel.adapters.sentence_transformers.tensors import tensor_or_array
from gemel.contracts import DOCUMENT_PROMPTS, QUERY_PROMPTS, OnTruncate, Vectors, checked_texts
from gemel.errors import InvalidInput
from gemel.loading import load_encoder
from gemel.similarity import normalise
from gemel.text_encoder import FolderEncoder, TextEncoder

ORGANISATION = "sentence-transformers"
NO_PROMPT = ""
IGNORED_CHOICES = ("task",)  # which of a Router's ways to take: such models are not opened here


class SentenceTransformer(Placed):
    """Texts into vectors: the constructor and the methods of the class of that name elsewhere."""

    def __init__(
        self,
        model_name_or_path: str | None = None,
        *,
        device: Any = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: str | SimilarityFunction | None = None,
        truncate_dim: int | None = None,
        on_truncate: OnTruncate = "warn",
        **arguments: Any,
    ) -> None:
        """The other arguments are those there, of which `IGNORED_ARGUMENTS` and the two beside it change
        nothing, and `precision` ("int8" or "float32") and `threads`, as `gemel.load_encoder` takes them."""
        self._folder = take_folder(model_name_or_path, ORGANISATION, arguments)
        self._computing = take_computing({**arguments, "device": device and str(device)})
        self._computing["on_truncate"] = on_truncate
        self._open()
        self.model_card_data = ModelCardData(str(model_name_or_path))
        spec = self._encoder.spec if isinstance(self._encoder, FolderEncoder) else None
        self.prompts = {"query": "", "document": "", **(spec.prompts if spec else {}), **(prompts or {})}
        self.default_prompt_name = default_prompt_name or (spec.default_prompt if spec else None)
        if self.default_prompt_name is not None:
            self._check_prompt("default_prompt_name", self.default_prompt_name)
        self._measure = measure_named(similarity_fn_name or (spec.similarity if spec else "cosine"))
        self.truncate_dim = truncate_dim or self._own_dim

    def __repr__(self) -> str:
        return f"SentenceTransformer({self._encoder!r})"

    # Encoding ---------------------------------------------------------------------------------------------

    def encode(
        self,
        inputs: Any = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: str | None = "sentence_embedding",
        precision: str | None = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: Any = None,
        chunk_size: int | None = None,
        **others: Any,
    ) -> Any:
        """The vector (dim,) of one text, or the vectors (n, dim) of several: float32, or as asked for."""
        others["inputs"] = inputs
        inputs = merged(others, "sentences", "inputs")
        refuse_rest("encode", others, IGNORED_CHOICES)
        if batch_size < 1:
            raise InvalidInput(f"batch_size is {batch_size!r}; expected at least 1")
        precision = checked_precision(precision)
        is_one = isinstance(inputs, str)
        texts = [inputs] if is_one else checked_texts(_listed(inputs))
        encoder = self._prompted(prompt, prompt_name)
        dim = self.truncate_dim if truncate_dim is None else truncate_dim
        if output_value != "sentence_embedding":
            found: Any = _token_values(encoder, texts, output_value, dim)
        else:
            vectors = encoder.encode(texts, show_progress=bool(show_progress_bar))[:, :dim]
            vectors = normalise(vectors) if normalize_embeddings else np.ascontiguousarray(vectors)
            found = _converted(vectors, precision, convert_to_numpy, convert_to_tensor)
        return found[0] if is_one else found

    def encode_query(
        self, inputs: Any = None, prompt_name: str | None = None, *others: Any, **choices: Any
    ) -> Any:
        """The same with the model's prompt for queries, where it has one."""
        return self.encode(inputs, prompt_name or self._first_prompt(QUERY_PROMPTS), *others, **choices)

    def encode_document(
        self, inputs: Any = None, prompt_name: str | None = None, *others: Any, **choices: Any
    ) -> Any:
        """The same with the model's prompt for documents, where it has one."""
        return self.encode(inputs, prompt_name or self._first_prompt(DOCUMENT_PROMPTS), *others, **choices)

    def encode_multi_process(
        self,
        sentences: Sequence[str],
        pool: Any = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        **choices: Any,
    ) -> Any:
        """The vectors of the texts; the engine uses all cores without other processes."""
        return self.encode(list(sentences), prompt_name, prompt, batch_size, pool=pool, **choices)

    def _first_prompt(self, names: Sequence[str]) -> str | None:
        """As there, the first name that there is, which may stand for no prompt at all."""
        return next((name for name in names if name in self.prompts), None)

    def _prompted(self, prompt: str | None, name: str | None) -> TextEncoder:
        """The encoder with a prompt as it was given, or by its name, or the model's own."""
        if prompt is None and name is not None:
            self._check_prompt("prompt_name", name)
        name = name or self.default_prompt_name
        text = prompt if prompt is not None else self.prompts[name] if name is not None else NO_PROMPT
        if isinstance(self._encoder, FolderEncoder):
            return self._encoder.with_prompts({"chosen": text} if text else {}, "chosen" if text else None)
        if text:
            raise InvalidInput(f"the prompt {text!r} was given, and this model has no prompts; leave it out")
        return self._encoder

    def _check_prompt(self, argument: str, name: str) -> None:
        if name not in self.prompts:
            raise InvalidInput(
                f"{argument} is {name!r}; expected one of the prompts: {', '.join(self.prompts)}"
            )

    # Tokens -----------------------------------------------------------------------------------------------

    @property
    def max_seq_length(self) -> int:
        """How many tokens of a text are read, special ones included."""
        return self._tokenising().spec.max_tokens

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        self._computing["max_tokens"] = value
        self._open()

    def get_max_seq_length(self) -> int:
        """The same as `max_seq_length`."""
        return self.max_seq_length

    def tokenize(self, texts: Sequence[str], prompt: str | None = None) -> dict[str, Any]:
        """Token ids and attention mask (n, tokens), padded to the longest; no prompt unless one is given."""
        encoder = self._tokenising()
        prompted = encoder.with_prompts({"given": prompt} if prompt else {}, "given" if prompt else None)
        pieces = prompted.with_on_truncate("ignore").tokenise(checked_texts(_listed(texts)))
        lengths = np.diff(pieces.starts)
        mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
        ids = np.full(mask.shape, int(encoder.folder.config.get("pad_token_id") or 0), np.int64)
        ids[mask] = pieces.flat
        values = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
        return {name: tensor_or_array(value) for name, value in values.items()}

    preprocess = tokenize

    def _tokenising(self) -> FolderEncoder:
        if not isinstance(self._encoder, FolderEncoder):
            raise InvalidInput("this model reads texts of any length and gives no vectors of tokens")
        return self._encoder

    # What it is -------------------------------------------------------------------------------------------

    def get_embedding_dimension(self) -> int:
        """The length of the vectors."""
        return min(self._encoder.dim, self.truncate_dim or self._encoder.dim)

    get_sentence_embedding_dimension = get_embedding_dimension

    @property
    def similarity_fn_name(self) -> str:
        """The measure that `similarity` goes by."""
        return self._measure

    @similarity_fn_name.setter
    def similarity_fn_name(self, value: str | SimilarityFunction) -> None:
        self._measure = measure_named(value)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """How similar every row is to every other (n, m)."""
        return FUNCTIONS[self._measure][0](embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """How similar rows at the same place are (n,)."""
        return FUNCTIONS[self._measure][1](embeddings1, embeddings2)

    @contextmanager
    def truncate_embeddings(self, truncate_dim: int | None) -> Iterator[None]:
        """Within this, vectors are cut to their first numbers."""
        before, self.truncate_dim = self.truncate_dim, truncate_dim
        try:
            yield
        finally:
            self.truncate_dim = before

    truncate_sentence_embeddings = truncate_embeddings

    def set_pooling_include_prompt(self, include_prompt: bool) -> None:
        """Refuse another pooling than the folder's."""
        if self._tokenising().spec.pooling.include_prompt != include_prompt:
            raise InvalidInput(
                f"include_prompt={include_prompt} was given, and the model's folder says otherwise; write it "
                "into 1_Pooling/config.json"
            )

    def evaluate(self, evaluator: Any, output_path: str | None = None) -> Any:
        """What an evaluator finds of this model."""
        if output_path is not None:
            Path(output_path).mkdir(parents=True, exist_ok=True)
        return evaluator(self, output_path)

    def save(self, path: str | Path | None, *ignored: Any, **choices: Any) -> None:
        """Write a model folder, in place of a model that is there; other files in it are kept."""
        if path is None:
            return
        encoder: Any = self._encoder
        if isinstance(encoder, FolderEncoder):
            encoder = encoder.with_prompts(self.prompts, self.default_prompt_name)
            encoder = encoder.with_similarity(self._measure)
            encoder = (
                encoder if self.truncate_dim is None else encoder.with_dim(self.get_embedding_dimension())
            )
        if not hasattr(encoder, "save"):
            raise InvalidInput("this model is not kept as a folder and cannot be saved")
        save_among_others(path, encoder.save)
        if isinstance(self._encoder, FolderEncoder):
            self._encoder.note_saved(path)

    save_pretrained = save

    # Opening ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        encoder = load_encoder(self._folder, **self._computing)
        self._own_dim = encoder.spec.truncate_dim if isinstance(encoder, FolderEncoder) else None
        if isinstance(encoder, FolderEncoder) and self._own_dim is not None:
            # how many numbers are wanted is decided at each call
            encoder = encoder.with_dim(replace(encoder.spec, truncate_dim=None).dim)
        self._encoder: TextEncoder = encoder
        self._tokenizer = None

    @property
    def _engine(self) -> Any:
        return self._encoder

    def _parts(self) -> list[Part]:
        if isinstance(self._encoder, FolderEncoder):
            return parts_of(self, self._encoder.spec)
        return [StaticEmbedding(self._encoder.dim)]

    @property
    def _transformer_folder(self) -> Path:
        return self._tokenising().folder.transformer


def _listed(inputs: Any) -> Any:
    """Arrays and columns of texts as a list; what is none is left for the check to name."""
    return inputs.tolist() if isinstance(inputs, np.ndarray) else inputs


def _converted(vectors: Vectors, precision: str, to_numpy: bool, to_tensor: bool) -> Any:
    """The vectors in the kind that was asked for; of no texts, what is returned there."""
    found: npt.NDArray[Any] = vectors if len(vectors) else np.array([], np.float32 if to_tensor else None)
    if len(found) and precision != "float32":
        found = quantize_embeddings(found, precision)
    if to_tensor:
        return tensor_or_array(found)
    if to_numpy:
        return found
    return list(tensor_or_array(found)) if len(found) else []


def _token_values(encoder: TextEncoder, texts: list[str], output_value: str | None, dim: int | None) -> Any:
    """Vectors of tokens (tokens, hidden_size) for each text, or all that the encoder makes of it."""
    if output_value not in ("token_embeddings", None):
        raise InvalidInput(
            f"output_value is {output_value!r}; expected sentence_embedding, token_embeddings or None"
        )
    if not isinstance(encoder, FolderEncoder):
        raise InvalidInput("this model gives no vectors of tokens; use output_value='sentence_embedding'")
    pieces = encoder.with_on_truncate("ignore").tokenise(texts)
    found = np.split(encoder.encode_tokens(pieces), pieces.starts[1:-1])
    by_token = [tensor_or_array(vectors) for vectors in found][: len(texts)]
    if output_value == "token_embeddings":
        return by_token
    return [
        {
            "input_ids": tensor_or_array(ids.astype(np.int64)),
            "attention_mask": tensor_or_array(np.ones(len(ids), np.int64)),
            "token_embeddings": tokens,
            "sentence_embedding": tensor_or_array(vector),
        }
        for ids, tokens, vector in zip(
            pieces.ids, by_token, encoder.encode_pieces(pieces)[:, :dim], strict=True
        )
    ]
