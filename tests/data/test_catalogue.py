"""The catalogue is whole and true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gemel.data.catalogue import CATALOGUE, data_set, find_set
from gemel.data.holdings import holding
from gemel.data.official import reader_of
from gemel.errors import InvalidInput
from gemel.evaluate.sts import STS_SETS

every_set = pytest.mark.parametrize("name", CATALOGUE)


@every_set
def test_an_entry_says_all_that_a_user_asks(name: str) -> None:
    known = CATALOGUE[name]
    assert re.fullmatch(r"[a-z0-9_]+", known.name)
    assert known.task
    assert known.description
    assert known.licence
    assert known.files
    assert len({file.part for file in known.files}) == len(known.files)
    assert bool(known.downloads) != bool(known.obstacle)  # it can be fetched, or it is said why not
    if known.layout:
        reader_of(known.layout)
        assert known.page
    assert known.layout or not known.downloads


@every_set
def test_hashes_are_hashes_and_say_who_vouches_for_them(name: str) -> None:
    known = CATALOGUE[name]
    hashes = [file.sha256 for file in known.files] + [each.sha256 for each in known.downloads]
    hashes += [sha256 for file in known.files for sha256, _ in file.other_forms]
    assert all(sha256 is None or re.fullmatch(r"[0-9a-f]{64}", sha256) for sha256 in hashes)
    for each in known.downloads:
        assert re.match(r"https?://", each.url)
        assert each.file_name
        assert bool(each.sha256) == bool(each.attested_by) == bool(each.n_bytes)


def test_no_file_is_entered_twice() -> None:
    hashes = [file.sha256 for known in CATALOGUE.values() for file in known.files if file.sha256]
    assert len(set(hashes)) == len(hashes) > 50


def test_the_paper_s_sets_have_as_many_rows_as_their_evaluator_expects() -> None:
    for each in STS_SETS:
        name, _, path = each.file.partition("/")
        file = data_set(name).file(path)
        assert file is not None
        assert file.rows == each.n_pairs


def test_a_name_may_be_written_with_dashes_and_capitals() -> None:
    assert data_set("KLUE-STS").name == "klue_sts"


def test_an_unknown_set_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(InvalidInput, match=r"has no set 'stbs'; did you mean stsb"):
        data_set("stbs")
    with pytest.raises(InvalidInput, match="has no set 'zzzzzz'; `gemel data` lists the known ones"):
        data_set("zzzzzz")


def test_a_file_is_found_packed_or_not(tmp_path: Path) -> None:
    (tmp_path / "snli").mkdir()
    (tmp_path / "snli" / "train.tsv").write_text("")
    (tmp_path / "snli" / "dev.tsv.gz").write_bytes(b"")
    assert find_set("snli", "train", tmp_path) == tmp_path / "snli" / "train.tsv"
    assert find_set("snli", "dev", tmp_path) == tmp_path / "snli" / "dev.tsv.gz"


def test_what_is_not_here_is_answered_with_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"stsb/test.tsv and is not there; `gemel data get stsb` fetches it"
    ):
        find_set("stsb", "test", tmp_path)
    by_hand = r"download it from https://nlds.*, then `gemel data get afs --from FILE`"
    with pytest.raises(InvalidInput, match=by_hand):
        find_set("afs", "all", tmp_path)
    with pytest.raises(InvalidInput, match=r"nobody publishes the merged one: give the folder that holds it"):
        find_set("nli_mix", "train", tmp_path)
    with pytest.raises(InvalidInput, match="stsb has no part 'valid'; expected one of train, dev, test"):
        find_set("stsb", "valid", tmp_path)


def test_real_data_is_what_the_catalogue_says(real_data: Path) -> None:
    held = [held for known in CATALOGUE.values() for held in holding(known, real_data, verify=True).files]
    here = {str(each.path): each.state for each in held if each.path is not None}
    assert here
    assert {path: state for path, state in here.items() if not state.startswith("verified")} == {}
