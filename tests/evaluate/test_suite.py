"""Groups of sets by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from stand_ins import ToyEncoder

from gemel.data.catalogue import data_set
from gemel.errors import InvalidInput
from gemel.evaluate.sts_sets import STS_GROUPS
from gemel.evaluate.suite import GROUPS, open_group
from gemel.evaluate.transfer import TRANSFER_TASKS


def test_an_unknown_group_is_told_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'glue' is unknown; choose from sts, sts-mteb, .* clustering"):
        open_group("glue", tmp_path)


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_missing_is_named_before_a_model_is_loaded(group: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"was looked for at .* and is not there; "):
        open_group(group, tmp_path)


def test_a_set_of_another_size_is_refused_before_any_model_is_loaded(tmp_path: Path) -> None:
    for name in ("search_snippets/all", "banking77/test", "ag_news/test", "trec/test"):
        (tmp_path / f"{name}.tsv").parent.mkdir()
        (tmp_path / f"{name}.tsv").write_text("text\tlabel\na\t0\nb\t1\n", "utf-8")
    with pytest.raises(
        InvalidInput, match=r"all\.tsv holds 2 examples; expected the 12,340 of SearchSnippets"
    ):
        open_group("clustering", tmp_path)


@pytest.mark.parametrize("group", sorted(set(GROUPS) - {"triplets"}))  # whose data nobody may hand on
def test_every_set_that_is_listed_is_in_the_data_folder(real_data: Path, group: str) -> None:
    assert callable(open_group(group, real_data))


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("duplicates", ["Quora (sample)", "PAWS-Wiki (sample)", "MRPC"]),
        ("retrieval", ["Cranfield"]),
        ("sts-korean", ["KorSTS"]),
    ],
)
def test_each_set_gives_its_figures(
    real_data: Path, toy_encoder: ToyEncoder, group: str, names: list[str]
) -> None:
    scores = list(open_group(group, real_data)(toy_encoder))
    assert [each.name for each in scores] == names
    assert all(0 < each.score < 1 and len(each.data_hash) == 64 for each in scores)


def test_every_file_that_is_measured_is_one_that_the_catalogue_can_tell_of() -> None:
    sets = [each for group in STS_GROUPS.values() for each in group]
    files = {file for each in sets for file in (each.file, *each.more_files)}
    files |= {file for task in TRANSFER_TASKS for file, _ in task.files.values()}
    for file in files:
        name, path = file.split("/")
        assert path in {each.path for each in data_set(name).files}, file
