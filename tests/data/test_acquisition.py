"""Sets are brought here whole, or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from web_stand_in import Site, serving

from gemel.data.acquisition import get_set, read_source_note
from gemel.data.catalogue import CATALOGUE, DataFile, DataSet, Download, find_set
from gemel.data.holdings import holding
from gemel.errors import InvalidInput, WriteFailed

TRAIN = b"NUM:dist How far is it ?\nLOC:city Which city 's it ?\n"
TEST = b"DESC:def What is it ?\n"
TABLE = "text\tlabel\tfine_label\nHow far is it ?\tNUM\tNUM:dist\nWhich city s it ?\tLOC\tLOC:city\n"


def archive(train: bytes = TRAIN, test: bytes = TEST) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("official/train_5500.label", train)
        packed.writestr("official/TREC_10.label", test)
    return buffer.getvalue()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site({"/toy.zip": archive()})) as started:
        yield started


@pytest.fixture
def toy(site: Site, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """A set of the catalogue, published on our own site."""
    content = site.files["/toy.zip"]
    known = DataSet(
        "toy",
        "classification",
        "questions",
        "none",
        (DataFile("train.tsv.gz", 2, sha256(TABLE.encode())), DataFile("test.tsv", 1)),
        (Download(f"{site.url}/toy.zip", len(content), sha256(content), "this test"),),
        layout="trec",
        page=site.url,
    )
    monkeypatch.setitem(CATALOGUE, "toy", known)
    monkeypatch.delenv("GEMEL_DATA", raising=False)
    return known


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_set_is_fetched_converted_verified_and_found(toy: DataSet, tmp_path: Path) -> None:
    receipt = get_set("toy", tmp_path / "new")
    assert everything(tmp_path / "new") == ["toy", "toy/source.json", "toy/test.tsv", "toy/train.tsv.gz"]
    assert [(file.path, file.rows) for file in receipt.files] == [("train.tsv.gz", 2), ("test.tsv", 1)]
    assert receipt.files[0].sha256 == sha256(TABLE.encode())
    assert find_set("toy", "train", tmp_path / "new") == tmp_path / "new" / "toy" / "train.tsv.gz"
    found = holding(toy, tmp_path / "new", verify=True)
    assert found.here == "yes"
    assert [held.state for held in found.files] == ["verified", "not known"]
    assert found.state == "not known"


def test_without_a_folder_it_goes_to_the_cache(
    toy: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMEL_CACHE", str(tmp_path / "cache"))
    assert get_set("toy").folder == tmp_path / "cache" / "data" / "toy"


def test_equal_content_makes_equal_files(toy: DataSet, tmp_path: Path) -> None:
    first, second = (get_set("toy", tmp_path / name).folder / "train.tsv.gz" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_the_hash_of_what_was_fetched_is_noted_and_whether_it_was_known(
    toy: DataSet, site: Site, tmp_path: Path
) -> None:
    size, digest = len(archive()), sha256(archive())
    site.files["/mirror.zip"] = archive()
    get_set("toy", tmp_path / "a")
    get_set("toy", tmp_path / "b", urls=[f"{site.url}/mirror.zip"])
    notes = [read_source_note(tmp_path / name / "toy") for name in ("a", "b")]
    sources = [note["sources"][0] for note in notes if note]
    assert sources == [
        {"place": f"{site.url}/toy.zip", "n_bytes": size, "sha256": digest, "was_known": True},
        {"place": f"{site.url}/mirror.zip", "n_bytes": size, "sha256": digest, "was_known": False},
    ]


def test_what_is_here_is_not_fetched_again_unless_told(toy: DataSet, site: Site, tmp_path: Path) -> None:
    get_set("toy", tmp_path)
    assert not get_set("toy", tmp_path).is_new
    assert len(site.asked) == 1
    (tmp_path / "toy" / "mine.tsv").write_text("keep")
    (tmp_path / "toy" / "test.tsv").write_text("damaged")
    (tmp_path / "toy" / "test.tsv").rename(tmp_path / "toy" / "test.tsv.gz")
    assert get_set("toy", tmp_path, overwrite=True).is_new
    assert everything(tmp_path / "toy") == ["mine.tsv", "source.json", "test.tsv", "train.tsv.gz"]


def test_a_folder_that_is_there_in_part_is_not_touched(toy: DataSet, tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "test.tsv").write_text("mine")
    with pytest.raises(InvalidInput, match=r"is there already with test\.tsv; .*--overwrite"):
        get_set("toy", tmp_path)
    assert everything(tmp_path) == ["toy", "toy/test.tsv"]


def test_a_file_that_was_changed_at_its_place_is_refused(toy: DataSet, site: Site, tmp_path: Path) -> None:
    content = bytearray(archive())
    content[40] ^= 1
    site.files["/toy.zip"] = bytes(content)
    with pytest.raises(InvalidInput, match=r"with sha256 .*; expected .*nothing was kept"):
        get_set("toy", tmp_path)
    assert not (tmp_path / "toy").exists()


def test_a_hash_that_the_user_trusts_goes_before_the_catalogue_s(
    toy: DataSet, site: Site, tmp_path: Path
) -> None:
    content = archive(test=b"DESC:def What was it ?\n")
    site.files["/toy.zip"] = content
    receipt = get_set("toy", tmp_path, hashes=[sha256(content)])
    assert receipt.sources[0].was_known
    assert "What was it ?" in (tmp_path / "toy" / "test.tsv").read_text("utf-8")
    with pytest.raises(InvalidInput, match="comes in 1 files, and 2 hashes were given"):
        get_set("toy", tmp_path, hashes=["a", "b"], overwrite=True)


def test_an_interrupted_download_is_continued_by_the_next_call(
    toy: DataSet, site: Site, tmp_path: Path
) -> None:
    site.drops_after = [100]
    with pytest.raises(InvalidInput, match="100 bytes are kept"):
        get_set("toy", tmp_path, retry_seconds=())
    assert not (tmp_path / "toy").exists()
    get_set("toy", tmp_path)
    assert site.asked == [None, "bytes=100-"]
    assert everything(tmp_path) == ["toy", "toy/source.json", "toy/test.tsv", "toy/train.tsv.gz"]


def test_of_several_files_those_that_are_whole_are_not_fetched_again(
    toy: DataSet, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files |= {"/train_5500.label": TRAIN, "/TREC_10.label": TEST}
    downloads = (
        Download(f"{site.url}/train_5500.label", len(TRAIN), sha256(TRAIN), "this test"),
        Download(f"{site.url}/TREC_10.label"),
    )
    known = DataSet("toy", toy.task, "", "", toy.files, downloads, layout="trec")
    monkeypatch.setitem(CATALOGUE, "toy", known)
    site.answers = [200, 404]
    with pytest.raises(InvalidInput, match=r"TREC_10\.label is not there any more"):
        get_set("toy", tmp_path)
    assert get_set("toy", tmp_path).is_new
    assert len(site.asked) == 3


@pytest.mark.parametrize(
    ("train", "flaw"),
    [
        (b"NUM:dist How far ?\n", r"gave 1 rows for train\.tsv\.gz; expected 2: they are cut off"),
        (b"", r"gave 0 rows for train\.tsv\.gz; expected 2"),
    ],
)
def test_another_number_of_rows_is_refused(
    train: bytes, flaw: str, toy: DataSet, site: Site, tmp_path: Path
) -> None:
    site.files["/toy.zip"] = archive(train)
    with pytest.raises(InvalidInput, match=flaw):
        get_set("toy", tmp_path, urls=[f"{site.url}/toy.zip"])
    assert not any(path.name != ".downloads" for path in tmp_path.iterdir())


def test_an_empty_split_is_refused_even_where_its_size_is_not_known(
    toy: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = DataSet("toy", "", "", "", (DataFile("train.tsv"), DataFile("test.tsv")), layout="trec", page="x")
    monkeypatch.setitem(CATALOGUE, "toy", known)
    (tmp_path / "official.zip").write_bytes(archive(test=b""))
    with pytest.raises(InvalidInput, match=r"0 rows for test\.tsv; expected at least one"):
        get_set("toy", tmp_path / "data", source=tmp_path / "official.zip")
    assert everything(tmp_path / "data") == []


def test_official_files_in_hand_are_taken_from_an_archive_or_a_folder(toy: DataSet, tmp_path: Path) -> None:
    (tmp_path / "in-hand.zip").write_bytes(archive())
    receipt = get_set("toy", tmp_path / "a", source=tmp_path / "in-hand.zip")
    assert receipt.sources[0].was_known
    folder = tmp_path / "folder" / "TREC"
    folder.mkdir(parents=True)
    (folder / "train_5500.label").write_bytes(TRAIN)
    (folder / "TREC_10.label").write_bytes(TEST)
    get_set("toy", tmp_path / "b", source=tmp_path / "folder")
    (tmp_path / "downloaded").mkdir()
    (tmp_path / "downloaded" / "toy.zip").write_bytes(archive())
    get_set("toy", tmp_path / "c", source=tmp_path / "downloaded")
    contents = [(tmp_path / name / "toy" / "train.tsv.gz").read_bytes() for name in "abc"]
    assert len(set(contents)) == 1


def test_a_file_in_hand_can_be_held_to_a_hash(toy: DataSet, tmp_path: Path) -> None:
    (tmp_path / "in-hand.zip").write_bytes(archive())
    with pytest.raises(InvalidInput, match=f"has the sha256 {sha256(archive())}; expected abc"):
        get_set("toy", tmp_path / "data", source=tmp_path / "in-hand.zip", hashes=["abc"])
    get_set("toy", tmp_path / "data", source=tmp_path / "in-hand.zip", hashes=[sha256(archive()).upper()])
    assert (tmp_path / "data" / "toy").is_dir()


def test_wrong_calls_are_told_in_a_sentence(toy: DataSet, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere is not there; expected the official files of toy"):
        get_set("toy", tmp_path / "data", source=tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="expected --url or --from, not both"):
        get_set("toy", tmp_path, source=tmp_path, urls=["http://x"])
    with pytest.raises(InvalidInput, match="nli_mix is not here; it cannot be fetched, because"):
        get_set("nli_mix", tmp_path, source=tmp_path)
    with pytest.raises(InvalidInput, match="afs is not here; it cannot be fetched"):
        get_set("afs", tmp_path)
    with pytest.raises(InvalidInput, match=r"'http://\[bad' is no address"):
        get_set("toy", tmp_path, urls=["http://[bad"])
    with pytest.raises(InvalidInput, match=r"end in the same name \(file, file\)"):
        get_set("toy", tmp_path, urls=["http://x/a/file", "http://x/b/file"])
    with pytest.raises(InvalidInput, match="--sha256 was given with the folder"):
        get_set("toy", tmp_path / "data", source=tmp_path, hashes=["abc"])


def test_a_damaged_file_is_told_as_such(toy: DataSet, tmp_path: Path) -> None:
    packed = get_set("toy", tmp_path).folder / "train.tsv.gz"
    packed.write_bytes(packed.read_bytes()[:-9])
    found = holding(toy, tmp_path, verify=True)
    assert [held.state for held in found.files] == ["damaged", "not known"]
    assert found.state == "damaged"


def test_what_was_fetched_stays_until_the_set_is_in_place(
    toy: DataSet, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, digest = len(archive()), sha256(archive())
    known = (Download(f"{site.url}/toy.zip", size, digest, "this test"),)
    files = (DataFile("train.tsv.gz", 3), DataFile("test.tsv", 1))  # of another release
    monkeypatch.setitem(CATALOGUE, "toy", DataSet("toy", "", "", "", files, known, layout="trec"))
    with pytest.raises(InvalidInput, match="gave 2 rows"):
        get_set("toy", tmp_path)
    monkeypatch.setitem(CATALOGUE, "toy", toy)
    assert get_set("toy", tmp_path).is_new
    assert len(site.asked) == 1


def test_a_place_that_cannot_be_written_is_told_as_such(toy: DataSet, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteFailed, match=r"cannot bring toy: .*; nothing of it was put in place"):
        get_set("toy", tmp_path / "file" / "data")


def test_the_note_is_small_and_says_who_made_it(toy: DataSet, tmp_path: Path) -> None:
    folder = get_set("toy", tmp_path).folder
    note = json.loads((folder / "source.json").read_text("utf-8"))
    assert sorted(note) == ["files", "made_by", "name", "sources"]
    assert note["made_by"].startswith("gemel ")
    assert read_source_note(tmp_path) is None


def official_copy(real_data: Path, folder: Path) -> Path:
    """The real STS16 and STSb as SemEval published them, made again from the tables."""
    folder.mkdir()
    files: dict[str, list[tuple[str, str]]] = {}
    for line in (real_data / "sts16" / "test.tsv").read_text("utf-8").split("\n")[1:-1]:
        first, second, score, file = line.split("\t")
        files.setdefault(file, []).append((f"{first}\t{second}\tsource\tsource", score))
    for file, rows in files.items():
        for kind, column in (("input", 0), ("gs", 1)):
            content = "".join(f"{row[column]}\n" for row in rows)
            (folder / f"STS2016.{kind}.{file}.txt").write_bytes(content.encode())
    for split in ("train", "dev", "test"):
        lines = (real_data / "stsb" / f"{split}.tsv").read_text("utf-8").split("\n")[1:-1]
        rows = [line.split("\t") for line in lines]
        content = "".join("\t".join((*row[3:], row[2], row[0], row[1])) + "\n" for row in rows)
        (folder / f"sts-{split}.csv").write_bytes(content.encode())
    return folder


@pytest.mark.parametrize("name", ["sts16", "stsb"])
def test_real_sets_survive_the_way_through_their_official_layout(
    name: str, real_data: Path, tmp_path: Path
) -> None:
    get_set(name, tmp_path / "data", source=official_copy(real_data, tmp_path / "official"))
    assert holding(CATALOGUE[name], tmp_path / "data", verify=True).state == "verified"
