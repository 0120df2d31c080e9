"""A copy has every record with its vector, however often it was broken off, and nothing is encoded again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest
from stand_ins import ToyEncoder, sentences
from store_places import PLACES, Place

from gemel.contracts import Vectors
from gemel.errors import Busy, InvalidInput, ModelMismatch
from gemel.index import Collection, KnownModel, Record, Store, copying
from gemel.index.copying import Copied, copy_collection
from gemel.index.opening import create_collection, make_alike
from gemel.index.records import Id
from gemel.index.remote import RemoteCollection

TEXTS = list(dict.fromkeys(sentences(70)))
RECORDS = [Record(n if n % 2 else f"#{n}", text, {"n": n}) for n, text in enumerate(TEXTS)]


@pytest.fixture
def source(tmp_path: Path, toy_encoder: ToyEncoder) -> Iterator[Collection]:
    with Collection.create(tmp_path / "source", toy_encoder, measure="dot", model="toy") as made:
        made.add(RECORDS)
        yield made


@pytest.fixture
def target(place: Place, source: Collection) -> Iterator[Store]:
    with make_alike(place.address(), source.settings) as made:
        yield made


def test_a_copy_is_the_same_collection(
    source: Collection, target: Store, place: Place, toy_encoder: ToyEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "WINDOW_ROWS", 16)
    n_encoded = toy_encoder.n_encoded
    seen: list[int] = []
    assert copy_collection(source, target, on_progress=seen.append) == Copied(len(TEXTS), 0)
    assert seen[0] == 16
    assert seen[-1] == len(TEXTS)
    assert list(target) == RECORDS
    assert target.settings == source.settings
    np.testing.assert_array_equal(target.vectors()[1], source.vectors()[1])
    searched = target.with_encoder(toy_encoder).search(TEXTS[:5], k=7)
    assert searched == source.search(TEXTS[:5], k=7)
    with create_collection(place.address("back"), toy_encoder, measure="dot") as back:
        assert len(copy_collection(target, back)) == len(TEXTS)
        assert list(back) == RECORDS
    assert toy_encoder.n_encoded == n_encoded + 10  # the queries


def test_a_copy_that_was_broken_off_goes_on(
    source: Collection, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "WINDOW_ROWS", 16)

    class PulledTheCable(Exception):
        """What breaks it off."""

    def after_two_windows(n_done: int) -> None:
        if n_done > 16:
            raise PulledTheCable

    with pytest.raises(PulledTheCable):
        copy_collection(source, target, on_progress=after_two_windows)
    assert len(target) == 32
    source.add([Record("#0", "another text", {})])
    assert copy_collection(source, target) == Copied(len(TEXTS) - 31, 31)
    assert target.get(["#0"]) == [Record("#0", "another text", {})]
    assert copy_collection(source, target) == Copied(0, len(TEXTS))


def test_a_text_that_changes_meanwhile_is_copied_with_its_own_vector(
    source: Collection, place: Place, tmp_path: Path, toy_encoder: ToyEncoder
) -> None:
    class Meddled(Collection):
        """A target before which the source changes, once its records have been listed."""

        def get(self, ids: Iterable[Id]) -> list[Record | None]:
            changing.add([Record("#0", "another text", {"n": -1})])
            return super().get(ids)

    with (
        make_alike(place.address(), source.settings) as made,
        Meddled.create(tmp_path / "target", toy_encoder, measure="dot") as target,
    ):
        copy_collection(source, made)
        changing = made.with_encoder(toy_encoder)
        copy_collection(changing, target)
        texts = [record.text for record in target]
        np.testing.assert_array_equal(target.vectors()[1], toy_encoder.encode(texts))
        assert super(Meddled, target).get(["#0"]) == [Record("#0", "another text", {"n": -1})]


def test_records_come_with_their_vectors(source: Collection, target: Store, toy_encoder: ToyEncoder) -> None:
    copy_collection(source, target)
    target.remove([3])
    left = [record for record in RECORDS if record.id != 3]
    records, vectors = target.records_with_vectors()
    assert records == left
    np.testing.assert_array_equal(vectors, toy_encoder.encode([record.text for record in left]))
    records, vectors = target.records_with_vectors(["#2", 3, 1, "nowhere"])
    assert records == [RECORDS[2], RECORDS[1]]
    np.testing.assert_array_equal(vectors, toy_encoder.encode([TEXTS[2], TEXTS[1]]))
    none, nothing = target.records_with_vectors([])
    assert (none, nothing.shape) == ([], (0, 16))


@pytest.mark.parametrize("place", PLACES[1:], indirect=True)
def test_a_server_is_asked_again_for_what_has_changed_meanwhile(
    place: Place, toy_encoder: ToyEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create_collection(place.address(), toy_encoder) as made:
        assert isinstance(made, RemoteCollection)
        made.add(["the dog", "the cat", "the horse"], ids=[1, 2, 3])
        backend = made._backend
        read, texts = backend.vectors, iter(["the cat sleeps", "the cat sleeps and sleeps"])

        def after_a_change(ids: Sequence[Id] | None) -> tuple[list[Id], Vectors]:
            for text in islice(texts, 1):
                made.add([text], ids=[2])
                made.remove([3])
            return read(ids)

        monkeypatch.setattr(backend, "vectors", after_a_change)
        records, vectors = made.records_with_vectors([1, 2, 3])
        assert [record.text for record in records] == ["the dog", "the cat sleeps and sleeps"]
        np.testing.assert_array_equal(vectors, toy_encoder.encode([record.text for record in records]))
        texts = (f"the cat sleeps {n} times" for n in count())
        with pytest.raises(Busy, match="change faster than they can be read"):
            made.records_with_vectors([1, 2])


def test_a_number_that_becomes_true_is_a_change(source: Collection, target: Store) -> None:
    source.add(["a draft"], ["d"], [{"draft": 1, "parts": [{"n": 0}]}])
    copy_collection(source, target)
    assert copy_collection(source, target).n_copied == 0
    for metadata in ({"draft": True, "parts": [{"n": 0}]}, {"draft": True, "parts": [{"n": False}]}):
        source.add(["a draft"], ["d"], [metadata])
        assert copy_collection(source, target).n_copied == 1
    assert target.count("draft = true") == 1


def test_what_only_the_target_has_is_left_alone(source: Collection, target: Store) -> None:
    target.add_vectors([Record("mine", "own")], np.ones((1, 16)), fingerprint="toy-16")
    copy_collection(source, target)
    assert len(target) == len(TEXTS) + 1
    assert "mine" in target


def test_vectors_that_cannot_be_compared_are_not_mixed(source: Collection, place: Place) -> None:
    with (
        create_collection(place.address(), KnownModel("other", 16), measure="dot") as other,
        pytest.raises(ModelMismatch, match=r"other.*toy-16"),
    ):
        copy_collection(source, other)
    with (
        create_collection(place.address("cosine"), KnownModel("toy-16", 16)) as cosine,
        pytest.raises(InvalidInput, match=r"measures by dot and .* by cosine"),
    ):
        copy_collection(source, cosine)
