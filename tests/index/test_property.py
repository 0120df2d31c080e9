"""Whatever is done to a collection, it agrees with a dictionary and brute force."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from stand_ins import WORDS, ToyEncoder
from store_places import Place

from gemel.index import Record, dense, upkeep
from gemel.index.opening import create_collection, open_collection
from gemel.similarity import top_k

ids = st.integers(0, 12) | st.sampled_from(["0", "1", "a", "b", "c"])
texts = st.lists(st.sampled_from(WORDS[:12]), min_size=1, max_size=4).map(" ".join)
metadata = st.fixed_dictionaries({}, optional={"n": st.integers(0, 3), "kind": st.sampled_from(["x", "y"])})
entries = st.dictionaries(ids, st.tuples(texts, metadata), min_size=1, max_size=8)
FILTERS = {
    "n >= 2": lambda known: known.get("n", -1) >= 2,
    'kind = "x" and not n = 1': lambda known: known.get("kind") == "x" and known.get("n") != 1,
    "n in (0, 3) or kind != null": lambda known: known.get("n") in (0, 3) or "kind" in known,
}


class AnyUse(RuleBasedStateMachine):
    """Upserts, removals, reopenings, compactions and searches in any order."""

    kind = "folder"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.encoder = ToyEncoder()
        self.known: dict[Any, Record] = {}

    @initialize(
        measure=st.sampled_from(["cosine", "dot", "euclidean"]), dtype=st.sampled_from(["float32", "float16"])
    )
    def create(self, measure: str, dtype: Any) -> None:
        self.measure, self.dtype = measure, dtype
        self.address = Place(self.kind, self.folder).address()
        self.collection = create_collection(self.address, self.encoder, measure=measure, dtype=dtype)
        self.reader = open_collection(self.address, self.encoder, read_only=True)

    @rule(entries=entries)
    def add(self, entries: dict[Any, tuple[str, dict[str, Any]]]) -> None:
        records = [Record(id_, text, known) for id_, (text, known) in entries.items()]
        changed = [record for record in records if self.known.get(record.id) not in (None, record)]
        n_new = sum(record.id not in self.known for record in records)
        added = self.collection.add(records)
        assert (added.n_new, added.n_changed) == (n_new, len(changed))
        self.known |= {record.id: record for record in records}

    @rule(gone=st.lists(ids, max_size=5))
    def remove(self, gone: list[Any]) -> None:
        assert self.collection.remove(gone) == len({id_ for id_ in gone if id_ in self.known})
        for id_ in gone:
            self.known.pop(id_, None)

    @rule()
    def reopen(self) -> None:
        self.collection.close()
        self.collection = open_collection(self.address, self.encoder)

    @rule()
    def compact(self) -> None:
        self.collection.compact()

    @rule(query=texts, k=st.integers(1, 12), named=st.none() | st.sampled_from(sorted(FILTERS)))
    def search(self, query: str, k: int, named: str | None) -> None:
        passes = FILTERS[named] if named else lambda known: True
        allowed = [record for record in self.known.values() if passes(record.metadata)]
        assert self.collection.count(named) == len(allowed)
        for collection in (self.collection, self.reader):
            found = collection.search([query], k=k, filter=named)[0]
            assert {hit.record.id for hit in found} <= {record.id for record in allowed}
            assert len(found) == min(k, len(allowed))
            if allowed:
                rows = self.encoder.encode([record.text for record in allowed]).astype(self.dtype)
                expected = top_k(self.encoder.encode([query]), rows, min(k, len(allowed)), self.measure)
                np.testing.assert_array_equal([hit.score for hit in found], expected.scores[0])

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "collection"):
            assert {record.id: record for record in self.collection} == self.known
            assert {record.id: record for record in self.reader} == self.known
            assert self.collection.get(list(self.known)) == list(self.known.values())

    def teardown(self) -> None:
        if hasattr(self, "collection"):
            self.collection.close()
            self.reader.close()
        shutil.rmtree(self.folder)


class AnyUseOfAFolder(AnyUse):
    """The same with what only a folder can do, or has to."""

    @rule()
    def compact(self) -> None:
        self.collection.compact()
        assert self.collection.info().n_removed == 0

    @precondition(lambda self: len(self.known) > 3)
    @rule()
    def build_index(self) -> None:
        self.collection.build_index()

    @rule()
    def examine(self) -> None:
        assert self.collection.doctor().is_sound


class AnyUseOfAnIndex(AnyUseOfAFolder):
    """The same where every search goes by an index; so few vectors are found by it exactly."""

    def __init__(self) -> None:
        super().__init__()
        self.usual = dense.EXACT_ROWS, dense.PASS_COST, dense.GATHER_COST, upkeep.UNINDEXED_ROWS
        dense.EXACT_ROWS, dense.PASS_COST, dense.GATHER_COST, upkeep.UNINDEXED_ROWS = 2, 1e9, 600, 6

    def teardown(self) -> None:
        dense.EXACT_ROWS, dense.PASS_COST, dense.GATHER_COST, upkeep.UNINDEXED_ROWS = self.usual
        super().teardown()


class AnyUseOfPostgres(AnyUse):
    """The same in PostgreSQL."""

    kind = "postgresql"


class AnyUseOfMilvus(AnyUse):
    """The same in Milvus."""

    kind = "milvus"


TestAnyUse = AnyUseOfAFolder.TestCase
TestAnyUse.settings = settings(max_examples=20, stateful_step_count=15)
TestAnyUseOfAnIndex = AnyUseOfAnIndex.TestCase
TestAnyUseOfAnIndex.settings = settings(max_examples=20, stateful_step_count=15)
TestAnyUseOfPostgres = pytest.mark.extras(AnyUseOfPostgres.TestCase)
TestAnyUseOfPostgres.settings = settings(max_examples=20, stateful_step_count=15)
TestAnyUseOfMilvus = pytest.mark.extras(AnyUseOfMilvus.TestCase)
TestAnyUseOfMilvus.settings = settings(max_examples=10, stateful_step_count=12)
