"""Classes without examples: a text belongs to the class whose name it is most like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder, Vectors, checked_texts
from gemel.errors import InvalidInput
from gemel.similarity import normalise

# Measured with all-MiniLM-L6-v2 on banking77, search snippets, AG News, TREC and SST-2: the log-loss is least
# between 0.04 and 0.1, and at 0.05 within 0.04 nats of that, but for TREC (0.1). Predictions do not depend on
# it.
TEMPERATURE = 0.05
LEAST_TEMPERATURE = 1e-300  # a cosine divided by less may be more than a float64 holds
PLACE = "{}"  # where a template takes the name of a class

LabelTexts = Sequence[str] | Mapping[str, str | Sequence[str]]


class ZeroShotClassifier:
    """softmax(cosine(text, class) / temperature), where a class is the mean of the texts that describe it."""

    def __init__(
        self,
        encoder: Encoder,
        labels: LabelTexts,
        *,
        template: str | Sequence[str] = PLACE,
        temperature: float = TEMPERATURE,
    ) -> None:
        """`labels` are names, or each name with one or more texts that describe it; each text is put into
        each template, such as "This text is about {}."."""
        if not LEAST_TEMPERATURE <= temperature < np.inf:
            raise InvalidInput(
                f"temperature is {temperature!r}; expected a number above 0 that cosines can be divided by, "
                "such as 0.05"
            )
        texts_of = _checked_labels(labels)
        templates = _checked_templates(template)
        self.encoder = encoder
        self.labels = tuple(texts_of)
        self.temperature = temperature
        prompts = [
            [form.replace(PLACE, text) for text in texts for form in templates] for texts in texts_of.values()
        ]
        self._classes = _means(
            normalise(encoder.encode([text for texts in prompts for text in texts])), prompts
        )

    def __repr__(self) -> str:
        return f"ZeroShotClassifier({self.encoder!r}, {list(self.labels)}, temperature={self.temperature})"

    def similarities(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The cosine of each text and each class (n, labels)."""
        texts = checked_texts(texts, "put it into a list")
        cosines: npt.NDArray[np.float32] = normalise(self.encoder.encode(texts)) @ self._classes.T
        return cosines

    def probabilities(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """How likely each label is for each text (n, labels); rows add up to 1."""
        logits = self.similarities(texts).astype(np.float64) / self.temperature
        shares: npt.NDArray[np.float64] = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return shares.astype(np.float32)

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The likeliest label of each text."""
        return [self.labels[best] for best in self.similarities(texts).argmax(axis=1)]


def _means(vectors: Vectors, groups: Sequence[Sequence[str]]) -> Vectors:
    """The mean direction of the vectors of each group, which follow each other."""
    ends = np.cumsum([len(group) for group in groups])[:-1]
    return normalise(np.stack([part.mean(axis=0) for part in np.split(vectors, ends)]))


def _checked_labels(labels: LabelTexts) -> dict[str, list[str]]:
    """The texts that describe each class, in the order of the classes."""
    if isinstance(labels, Mapping):
        texts_of = {
            name: [texts] if isinstance(texts, str) else checked_texts(texts)
            for name, texts in labels.items()
        }
        names = list(texts_of)
    else:
        names = checked_texts(labels, "give two labels or more in a list")
        texts_of = {name: [name] for name in names}
    _check_names(names)
    for name, texts in texts_of.items():
        if not texts or not all(text.strip() for text in texts):
            raise InvalidInput(f"the label {name!r} has no text, or an empty one; expected what describes it")
    return texts_of


def _check_names(names: Sequence[object]) -> None:
    for position, name in enumerate(names):
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(f"label {position} is {name!r}; expected the name of a class")
        if name in names[:position]:
            raise InvalidInput(f"the label {name!r} is given twice; expected each class once")
    if len(names) < 2:
        given = f"one label, {names[0]!r}," if names else "no label"
        raise InvalidInput(f"{given} was given; expected two or more to choose from")


def _checked_templates(template: str | Sequence[str]) -> list[str]:
    templates = [template] if isinstance(template, str) else checked_texts(template)
    flawed = next((form for form in templates if form.count(PLACE) != 1), None)
    if flawed is not None or not templates:
        shown = "no template was given" if flawed is None else f"the template is {flawed!r}"
        raise InvalidInput(
            f"{shown}; expected one {PLACE} for the label, as in 'This text is about {PLACE}.'"
        )
    return templates
