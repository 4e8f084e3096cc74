"""The downloader against a real local HTTP server."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import replace

import pytest

from local_http import serve
from tisat.errors import DataFileError, ParameterError
from tisat_bench.datasets import card, download
from tisat_bench.datasets.cards import FileCard, Origin
from tisat_bench.datasets.downloads import fetch_set

BIG = bytes(range(256)) * 2000  # 512,000 bytes: several blocks
FILES = {"train/a.txt": BIG, "labels.csv": b"0\n1\n"}


def git_id(content: bytes) -> str:
    """As ``git hash-object`` computes it."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def small_card(address: str, **changes):
    """A data set of two files, one checked by git id and one by sha256, on the local server."""
    files = (
        FileCard("train/a.txt", "git", git_id(BIG), len(BIG)),
        FileCard("labels.csv", "sha256", hashlib.sha256(FILES["labels.csv"]).hexdigest(), None),
    )
    origin = Origin("files", f"{address}/set/", "", ())
    return replace(card("smd"), files=files, download=(origin,), **changes)


@pytest.fixture
def site():
    with serve() as running:
        running.files = {f"/set/{path}": content for path, content in FILES.items()}
        yield running


def fetch(site, folder, **changes):
    fetch_set(small_card(site.address, **changes), folder, attempts=3, pause=0.0)


def ranges(site, path="/set/train/a.txt"):
    return [asked for requested, asked in site.requests if requested == path]


def assert_whole(folder):
    for path, content in FILES.items():
        assert (folder / path).read_bytes() == content
    assert not list(folder.rglob("*.part"))
    assert json.loads((folder / ".tisat-smd.json").read_text())["files"] == list(FILES)


def test_files_arrive_whole_and_the_manifest_last(site, tmp_path):
    fetch(site, tmp_path)
    assert_whole(tmp_path)
    manifest = (tmp_path / ".tisat-smd.json").stat().st_mtime_ns
    assert all((tmp_path / path).stat().st_mtime_ns <= manifest for path in FILES)


def test_a_second_run_asks_for_nothing(site, tmp_path):
    fetch(site, tmp_path)
    site.requests.clear()
    fetch(site, tmp_path)
    assert site.requests == []


def test_a_broken_transfer_is_continued_where_it_stopped(site, tmp_path):
    site.break_after["/set/train/a.txt"] = [100_000, 50_000]
    fetch(site, tmp_path)
    assert ranges(site) == [None, "bytes=100000-", "bytes=150000-"]
    assert_whole(tmp_path)


def test_giving_up_keeps_what_has_arrived_for_the_next_run(site, tmp_path):
    site.break_after["/set/train/a.txt"] = [100_000, 1_000, 1_000]
    with pytest.raises(DataFileError, match=r"broke off 3 times.*what has arrived is kept"):
        fetch(site, tmp_path)
    assert (tmp_path / "train" / "a.txt.part").stat().st_size == 102_000
    assert not (tmp_path / "train" / "a.txt").exists()
    assert not (tmp_path / ".tisat-smd.json").exists()
    site.requests.clear()
    fetch(site, tmp_path)
    assert ranges(site) == ["bytes=102000-"]
    assert_whole(tmp_path)


def test_a_server_without_ranges_is_read_from_the_start(site, tmp_path):
    site.ranges = False
    site.break_after["/set/train/a.txt"] = [100_000]
    fetch(site, tmp_path)
    assert_whole(tmp_path)


def test_a_part_left_by_another_version_is_thrown_away_once(site, tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "a.txt.part").write_bytes(b"x" * 1000)
    fetch(site, tmp_path)
    assert ranges(site) == ["bytes=1000-", None]
    assert_whole(tmp_path)


def test_a_part_longer_than_the_file_is_thrown_away(site, tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "a.txt.part").write_bytes(b"x" * (len(BIG) + 7))
    fetch(site, tmp_path)
    assert_whole(tmp_path)


def test_a_part_that_is_already_whole_needs_no_bytes(site, tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "a.txt.part").write_bytes(BIG)
    fetch(site, tmp_path)
    assert ranges(site) == [f"bytes={len(BIG)}-"]
    assert_whole(tmp_path)


def test_wrong_bytes_are_refused_and_leave_nothing(site, tmp_path):
    site.files["/set/train/a.txt"] = BIG[:-1] + b"?"
    with pytest.raises(
        DataFileError, match=rf"'a.txt' from .* must have the git checksum {git_id(BIG)}. Got .*thrown away"
    ):
        fetch(site, tmp_path)
    assert not list(tmp_path.rglob("a.txt*"))
    assert not (tmp_path / ".tisat-smd.json").exists()


def test_a_damaged_file_of_the_cache_is_fetched_again(site, tmp_path):
    fetch(site, tmp_path)
    (tmp_path / "train" / "a.txt").write_bytes(BIG[:1000])
    site.requests.clear()
    fetch(site, tmp_path)
    assert [path for path, _ in site.requests] == ["/set/train/a.txt"]
    assert_whole(tmp_path)


def test_403_is_said_at_once(site, tmp_path):
    site.status["/set/train/a.txt"] = [403] * 9
    with pytest.raises(DataFileError, match=r"a.txt must give the file 'a.txt'. It answered 403 Forbidden"):
        fetch(site, tmp_path)
    assert len(ranges(site)) == 1


def test_500_is_tried_again(site, tmp_path):
    site.status["/set/train/a.txt"] = [500, 503]
    fetch(site, tmp_path)
    assert_whole(tmp_path)
    site.status["/set/labels.csv"] = [503] * 3
    (tmp_path / "labels.csv").unlink()
    with pytest.raises(DataFileError, match="answered 503"):
        fetch(site, tmp_path)


def test_nobody_listening_is_said_with_the_address(tmp_path):
    with serve() as site:
        address = site.address
    with pytest.raises(DataFileError, match=r"127.0.0.1.*broke off 3 times"):
        fetch_set(small_card(address), tmp_path, attempts=3, pause=0.0)


def zip_card(site, names):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in names:
            archive.writestr(f"data/{path}", FILES[path])
    site.files["/data.zip"] = packed.getvalue()
    return replace(small_card(site.address), download=(Origin("zip", f"{site.address}/data.zip", "data/", ()),))


def test_an_archive_is_continued_unpacked_and_removed(site, tmp_path):
    known = zip_card(site, FILES)
    site.break_after["/data.zip"] = [1000]
    fetch_set(known, tmp_path, attempts=2, pause=0.0)
    assert ranges(site, "/data.zip") == [None, "bytes=1000-"]
    assert_whole(tmp_path)
    assert not (tmp_path / "data.zip").exists()


def test_an_archive_that_lacks_a_file_or_is_none_is_refused(site, tmp_path):
    known = zip_card(site, ["labels.csv"])
    with pytest.raises(DataFileError, match=r"must hold 'data/train/a.txt'"):
        fetch_set(known, tmp_path, attempts=1, pause=0.0)
    (tmp_path / "data.zip").unlink()
    site.files["/data.zip"] = b"<html>please log in</html>"
    with pytest.raises(DataFileError, match="must be a zip file"):
        fetch_set(known, tmp_path, attempts=1, pause=0.0)
    assert not (tmp_path / "data.zip").exists()


def test_a_mirror_takes_the_place_of_the_publisher(site, tmp_path):
    with pytest.raises(DataFileError, match=rf"{site.address}/m/interpretation_label/.*404.*Another way to get smd: "):
        download("smd", tmp_path, url=f"{site.address}/m")


def test_files_and_archive_share_a_set_as_msl_does(site, tmp_path):
    known = zip_card(site, ["train/a.txt"])
    origins = (Origin("files", f"{site.address}/set/", "", ("labels.csv",)), *known.download)
    fetch_set(replace(known, download=origins), tmp_path, attempts=1, pause=0.0)
    assert_whole(tmp_path)
    assert [path for path, _ in site.requests] == ["/set/labels.csv", "/data.zip"]


def test_swat_says_how_to_ask_for_it(tmp_path):
    with pytest.raises(DataFileError, match=r"'swat' cannot be downloaded. Ask iTrust"):
        download("swat", tmp_path)


def test_only_http_is_spoken(tmp_path):
    with pytest.raises(DataFileError, match="must begin with https:// or http://"):
        download("psm", tmp_path, url="file:///etc")


def test_bad_arguments_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="'attempts'"):
        download("psm", tmp_path, attempts=0)
    with pytest.raises(ParameterError, match="'pause'"):
        download("psm", tmp_path, pause=-1.0)


def test_more_than_was_published_is_refused_and_thrown_away(site, tmp_path):
    site.files["/set/train/a.txt"] = BIG + b"x"
    with pytest.raises(DataFileError, match=r"must be at most 512,000 bytes large. More came; it was thrown away"):
        fetch(site, tmp_path)
    assert not list(tmp_path.rglob("*.part"))


def test_a_file_of_unknown_size_has_a_limit_too(site, tmp_path, monkeypatch):
    from tisat_bench.datasets import downloads as cache

    monkeypatch.setattr(cache, "LARGEST", 3)
    with pytest.raises(DataFileError, match="must be at most 3 bytes large"):
        fetch(site, tmp_path)


def test_a_download_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    from tisat.errors import DataFileError
    from tisat_bench import datasets, frozen

    def refused(*_):
        raise OSError("no network")

    monkeypatch.setattr("tisat_bench.datasets.downloads._request", refused)
    monkeypatch.setattr("tisat_bench.datasets.downloads.time.sleep", lambda _: None)
    with pytest.raises(DataFileError):
        datasets.download("smd", tmp_path / "data")
    assert not (tmp_path / "data" / "ServerMachineDataset").exists()
    (tmp_path / "ServerMachineDataset").mkdir()  # what an earlier version has left
    monkeypatch.setenv("TISAT_DATA", str(tmp_path))
    experiment = type("Experiment", (), {"sources": {}, "names": {}})()
    assert frozen.label_sets(experiment) == {}
