"""Words of texts in any script, for counting: what a key word can be."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import takewhile

from gemel.data.stop_words import ENGLISH_STOP_WORDS, KOREAN_STOP_WORDS

# The English list has words which say something all the same, and lacks some that do not.
_TELLING = {"amount", "bill", "call", "computer", "cry", "detail", "fire", "interest", "mill", "system"}
_IDLE = {"did", "does", "doing", "going", "got", "having", "im", "ive", "just", "like", "really", "want"}
LITTLE_SAID = frozenset((ENGLISH_STOP_WORDS - _TELLING) | _IDLE | KOREAN_STOP_WORDS)

# The particles that Korean hangs at a noun, the longer ones first.
_PARTICLES = (
    "에서는", "으로는", "에게서", "이라고", "까지", "부터", "에서", "에게", "으로", "처럼", "보다", "하고",
    "이나", "은", "는", "이", "가", "을", "를", "의", "에", "도", "만", "로", "와", "과", "나",
)  # fmt: skip
_HANGUL = re.compile("[가-힣]{3,}")

# Scripts that leave no blanks between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_UNSPACED_LETTER = re.compile(f"[{_UNSPACED}]")
_ASCII_WORD = re.compile("[0-9a-z]+")


@cache
def _word() -> re.Pattern[str]:
    """Letters and digits, with the marks that stand over, under and beside letters in many scripts."""
    marks = "".join(
        letter for letter in map(chr, range(0x300, 0x20000)) if unicodedata.category(letter) in ("Mn", "Mc")
    )
    return re.compile(rf"[^\W_](?:[^\W_]|[{marks}])*")


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, without numbers and single letters; of scripts that leave no blanks
    between words, all neighbouring two letters."""
    if text.isascii():  # ten times as quick
        words = _ASCII_WORD.findall(text.lower())
    else:
        words = [piece for word in _word().findall(text.lower()) for piece in _pieces(word)]
    return [word for word in words if len(word) > 1 and not word.isdigit()]


def _pieces(word: str) -> list[str]:
    pieces: list[str] = []
    for run in _RUN.findall(word):
        if _UNSPACED_LETTER.match(run):
            pieces += [run[start : start + 2] for start in range(max(1, len(run) - 1))]
        else:
            pieces.append(run)
    return pieces


def without_particles(counts: Sequence[Counter[str]]) -> list[Counter[str]]:
    """The same counts, with Korean nouns under one form: a particle is cut where the rest is met otherwise,
    too, by itself or with another particle."""
    words = set().union(*counts)
    forms: dict[str, list[str]] = defaultdict(list)
    for word in filter(_HANGUL.fullmatch, words):
        particle = next((each for each in _PARTICLES if word.endswith(each)), "")
        if particle and len(word) - len(particle) >= 2:
            forms[word.removesuffix(particle)].append(word)
    stems = {
        word: stem for stem, found in forms.items() if len(found) + (stem in words) > 1 for word in found
    }
    return [_renamed(each, stems) for each in counts] if stems else list(counts)


def _renamed(counts: Counter[str], stems: Mapping[str, str]) -> Counter[str]:
    renamed: Counter[str] = Counter()
    for word, count in counts.items():
        renamed[stems.get(word, word)] += count
    return renamed


def are_forms_of_one(first: str, second: str) -> bool:
    """Whether two words begin alike for most of their letters, as `refund` and `refunded` do."""
    n_shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    return n_shared >= 3 and n_shared >= 0.6 * max(len(first), len(second))
