"""Files from the web arrive whole, or not at all."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from web_stand_in import Site, serving

from gemel.data.download import download
from gemel.errors import InvalidInput

CONTENT = bytes(range(256)) * 2_000
HASH = hashlib.sha256(CONTENT).hexdigest()
NO_WAIT = (0.0, 0.0, 0.0)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site({"/a.zip": CONTENT})) as started:
        yield started


def test_a_file_arrives_with_its_hash_and_leaves_no_part(site: Site, tmp_path: Path) -> None:
    fetched = download(f"{site.url}/a.zip", tmp_path / "a.zip", sha256=HASH, n_bytes=len(CONTENT))
    assert (fetched.path.read_bytes(), fetched.n_bytes, fetched.sha256) == (CONTENT, len(CONTENT), HASH)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]
    assert site.asked == [None]


def test_a_dropped_connection_is_continued_where_it_broke(site: Site, tmp_path: Path) -> None:
    site.drops_after = [100_000, 50_000]
    fetched = download(f"{site.url}/a.zip", tmp_path / "a.zip", sha256=HASH, retry_seconds=NO_WAIT)
    assert fetched.path.read_bytes() == CONTENT
    assert site.asked == [None, "bytes=100000-", "bytes=150000-"]


def test_a_later_call_continues_what_an_earlier_one_has_left(site: Site, tmp_path: Path) -> None:
    site.drops_after = [300_000]
    with pytest.raises(InvalidInput, match=r"300,000 of 512,000 bytes.*\(300,000 bytes are kept\)"):
        download(f"{site.url}/a.zip", tmp_path / "a.zip", retry_seconds=())
    assert (tmp_path / "a.zip.part").stat().st_size == 300_000
    assert not (tmp_path / "a.zip").exists()
    assert download(f"{site.url}/a.zip", tmp_path / "a.zip").sha256 == HASH
    assert site.asked == [None, "bytes=300000-"]


@pytest.mark.parametrize("honours_if_range", [True, False])
def test_a_changed_file_is_never_glued_to_an_old_half(
    site: Site, tmp_path: Path, honours_if_range: bool
) -> None:
    site.drops_after, site.honours_if_range = [300_000], honours_if_range
    with pytest.raises(InvalidInput, match="repeat the command"):
        download(f"{site.url}/a.zip", tmp_path / "a.zip", retry_seconds=())
    changed = CONTENT[::-1]
    site.files["/a.zip"], site.etag = changed, '"second"'
    assert download(f"{site.url}/a.zip", tmp_path / "a.zip").path.read_bytes() == changed


def test_without_a_validator_another_length_starts_again(site: Site, tmp_path: Path) -> None:
    site.etag, site.drops_after = None, [300_000]
    with pytest.raises(InvalidInput, match="repeat the command"):
        download(f"{site.url}/a.zip", tmp_path / "a.zip", retry_seconds=())
    site.files["/a.zip"] = CONTENT[1:]
    assert download(f"{site.url}/a.zip", tmp_path / "a.zip").path.read_bytes() == CONTENT[1:]


def test_a_date_alone_is_enough_to_continue(site: Site, tmp_path: Path) -> None:
    site.etag, site.last_modified = None, "Wed, 21 Oct 2015 07:28:00 GMT"
    site.drops_after = [1_000]
    assert download(f"{site.url}/a.zip", tmp_path / "a.zip", retry_seconds=NO_WAIT).sha256 == HASH
    assert site.asked == [None, "bytes=1000-"]


def test_a_half_of_another_address_is_not_used(site: Site, tmp_path: Path) -> None:
    site.files["/b.zip"], site.drops_after = CONTENT[::-1], [300_000]
    with pytest.raises(InvalidInput, match="repeat the command"):
        download(f"{site.url}/a.zip", tmp_path / "file", retry_seconds=())
    assert download(f"{site.url}/b.zip", tmp_path / "file").path.read_bytes() == CONTENT[::-1]


def test_a_half_without_its_note_is_not_trusted(site: Site, tmp_path: Path) -> None:
    (tmp_path / "a.zip.part").write_bytes(b"of something else")
    assert download(f"{site.url}/a.zip", tmp_path / "a.zip").sha256 == HASH
    assert site.asked == [None]


def test_a_server_without_ranges_sends_it_all_again(site: Site, tmp_path: Path) -> None:
    site.has_ranges, site.drops_after = False, [300_000]
    assert download(f"{site.url}/a.zip", tmp_path / "a.zip", retry_seconds=NO_WAIT).sha256 == HASH
    assert site.asked == [None, "bytes=300000-"]


def test_a_half_that_is_whole_is_not_asked_for_again(site: Site, tmp_path: Path) -> None:
    url = f"{site.url}/a.zip"
    (tmp_path / "a.zip.part").write_bytes(CONTENT)
    note = {"url": url, "etag": '"first"', "last_modified": None, "n_bytes": len(CONTENT)}
    (tmp_path / "a.zip.part.json").write_text(json.dumps(note))
    assert download(url, tmp_path / "a.zip").sha256 == HASH
    assert site.asked == []


def test_a_half_that_is_longer_than_the_file_is_thrown_away(site: Site, tmp_path: Path) -> None:
    url = f"{site.url}/a.zip"
    (tmp_path / "a.zip.part").write_bytes(CONTENT * 2)
    note = {"url": url, "etag": '"first"', "last_modified": None, "n_bytes": len(CONTENT)}
    (tmp_path / "a.zip.part.json").write_text(json.dumps(note))
    assert download(url, tmp_path / "a.zip").sha256 == HASH
    assert site.asked == ["bytes=1024000-", None]


def test_a_busy_server_is_asked_again(site: Site, tmp_path: Path) -> None:
    site.answers = [503, 429]
    assert download(f"{site.url}/a.zip", tmp_path / "a.zip", retry_seconds=NO_WAIT).sha256 == HASH
    assert len(site.asked) == 3


def test_content_that_hashes_otherwise_is_refused_and_not_kept(site: Site, tmp_path: Path) -> None:
    site.files["/a.zip"] = b"a page that says: please log in"
    with pytest.raises(
        InvalidInput, match=f"gave 31 bytes with sha256 .*; expected {HASH}.*nothing was kept"
    ):
        download(f"{site.url}/a.zip", tmp_path / "a.zip", sha256=HASH)
    assert list(tmp_path.iterdir()) == []


def test_another_length_than_the_known_one_is_refused_before_it_is_fetched(
    site: Site, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="has 512,000 bytes; expected 7: the file was changed"):
        download(f"{site.url}/a.zip", tmp_path / "a.zip", sha256=HASH, n_bytes=7)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_unknown_length_arrives(site: Site, tmp_path: Path) -> None:
    site.tells_length = False
    assert download(f"{site.url}/a.zip", tmp_path / "a.zip", sha256=HASH).n_bytes == len(CONTENT)


def test_what_is_gone_is_told_at_once(site: Site, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"is not there any more \(the server says 404 Not Found\); give"):
        download(f"{site.url}/b.zip", tmp_path / "b.zip", retry_seconds=NO_WAIT)
    site.answers = [403]
    with pytest.raises(InvalidInput, match=r"is refused .*403"):
        download(f"{site.url}/a.zip", tmp_path / "a.zip", retry_seconds=NO_WAIT)
    assert len(site.asked) == 2


def test_a_server_that_does_not_answer_is_told_after_a_few_attempts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/a.zip"
        with pytest.raises(InvalidInput, match=r"cannot be reached: .*check the network"):
            download(url, tmp_path / "a.zip", retry_seconds=NO_WAIT)


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://there/a.zip", "a.zip"])
def test_only_web_addresses_are_fetched(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is no address; expected http:// or https://"):
        download(url, tmp_path / "a.zip")


LIMITED = """
import resource, signal, sys
from pathlib import Path
from gemel.data.download import download
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
download(sys.argv[1], Path(sys.argv[2]))
"""


def test_a_disk_that_takes_no_more_is_told_and_what_came_is_kept(site: Site, tmp_path: Path) -> None:
    url, target = f"{site.url}/a.zip", tmp_path / "a.zip"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, url, str(target)], capture_output=True, text=True, timeout=60
    )
    assert "WriteFailed: cannot write" in done.stderr
    assert "200,000 bytes are kept: make room" in done.stderr
    assert download(url, target).sha256 == HASH
    assert site.asked == [None, "bytes=200000-"]
