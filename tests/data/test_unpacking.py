"""Archives are unpacked whole, and only where they should be."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from gemel.data.unpacking import unpack
from gemel.errors import InvalidInput, WriteFailed

TEXT = "\n".join(f"line {number} of many" for number in range(5_000)).encode()


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "unpacked").mkdir()
    return tmp_path / "unpacked"


@pytest.mark.parametrize(("pack", "name"), [(zipped, "a.zip"), (tarred, "a.tar.gz"), (tarred, "a.tgz")])
def test_archives_are_unpacked_with_their_folders(
    pack: object, name: str, tmp_path: Path, folder: Path
) -> None:
    assert callable(pack)
    unpack(pack(tmp_path / name, {"set/train.txt": TEXT, "readme.txt": b"hello"}), folder)
    assert (folder / "set" / "train.txt").read_bytes() == TEXT
    assert (folder / "readme.txt").read_bytes() == b"hello"


@pytest.mark.parametrize("name", ["data.tsv", "data.tsv.gz"])
def test_what_is_no_archive_is_taken_as_it_is(name: str, tmp_path: Path, folder: Path) -> None:
    content = gzip.compress(TEXT) if name.endswith(".gz") else TEXT
    (tmp_path / name).write_bytes(content)
    unpack(tmp_path / name, folder)
    assert (folder / name).read_bytes() == content


def test_an_archive_under_another_name_is_known_by_its_first_bytes(tmp_path: Path, folder: Path) -> None:
    unpack(zipped(tmp_path / "SICK", {"SICK.txt": b"text"}), folder)
    assert (folder / "SICK.txt").read_bytes() == b"text"


@pytest.mark.parametrize(
    "name", ["../evil.txt", "a/../../evil.txt", "/evil.txt", "..\\evil.txt", "C:/evil.txt"]
)
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_path_that_leads_out_is_refused(pack: object, name: str, tmp_path: Path, folder: Path) -> None:
    assert callable(pack)
    archive = pack(tmp_path / ("a.zip" if pack is zipped else "a.tar.gz"), {name: b"evil"})
    with pytest.raises(InvalidInput, match="leads out of its folder"):
        unpack(archive, folder)
    assert not list(tmp_path.rglob("*evil*"))


def test_links_in_an_archive_are_not_made(tmp_path: Path, folder: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo("passwords")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    unpack(tmp_path / "a.tar.gz", folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("pack", "name"), [(zipped, "a.zip"), (tarred, "a.tar.gz")])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_truncated_archive_is_refused(
    pack: object, name: str, share: float, tmp_path: Path, folder: Path
) -> None:
    assert callable(pack)
    whole = pack(tmp_path / name, {"train.txt": TEXT}).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InvalidInput, match=r"cannot be unpacked .*; expected a whole and undamaged archive"):
        unpack(tmp_path / name, folder)


def test_a_damaged_member_is_refused(tmp_path: Path, folder: Path) -> None:
    content = bytearray(zipped(tmp_path / "a.zip", {"train.txt": TEXT}).read_bytes())
    content[200] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(InvalidInput, match="cannot be unpacked"):
        unpack(tmp_path / "a.zip", folder)


def test_a_zip_that_would_fill_the_disk_is_refused_before_it_does(tmp_path: Path, folder: Path) -> None:
    content = bytearray(zipped(tmp_path / "a.zip", {"train.txt": TEXT}).read_bytes())
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = (0xFFFFFFFE).to_bytes(4, "little")  # the size it claims
    entry = bytes(content[directory : content.rindex(b"PK\x05\x06")])
    end = bytearray(content[content.rindex(b"PK\x05\x06") :])
    n_copies = 60_000  # of 4 GiB each, more than any disk has
    end[8:12] = n_copies.to_bytes(2, "little") * 2
    end[12:16] = (len(entry) * n_copies).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(bytes(content[:directory]) + entry * n_copies + bytes(end))
    with pytest.raises(WriteFailed, match=r"has room for .*; nothing was unpacked"):
        unpack(tmp_path / "a.zip", folder)
    assert list(folder.iterdir()) == []
