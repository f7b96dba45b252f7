"""Following one file: nothing is lost, nothing comes twice, and a rewrite never passes as an append."""

from __future__ import annotations

import os
import sys
import tempfile
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from island.model import Record
from island.sources import files
from island.sources.files import Document, Follower, Look, Presence, stamp

LINES = b'{"n":1}\n{"n":2}\n{"n":3}\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_bytes(LINES)
    return path


@pytest.fixture
def follower(log: Path) -> Follower:
    """Return a follower that has seen LINES."""
    follower = Follower(str(log))
    assert follower.look() == Look(restart=True)
    return follower


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def rewrite(path: Path, text: bytes) -> None:
    with path.open("r+b") as file:
        file.write(text)
        file.truncate()


def texts(records: object) -> list[bytes]:
    return [record.data for record in records]


# A log


def test_first_sight_is_a_restart_and_reads_backwards(log, follower):
    mtime = log.stat().st_mtime
    assert list(follower.backwards()) == [
        Record(str(log), b'{"n":3}', 16, mtime),
        Record(str(log), b'{"n":2}', 8, mtime),
        Record(str(log), b'{"n":1}', 0, mtime),
    ]
    assert follower.look() == Look()


def test_appended_lines_come_once_oldest_first_with_their_offsets(log, follower):
    append(log, b"four\nfive\n")
    look = follower.look()
    assert [(record.data, record.offset) for record in look.records] == [(b"four", 24), (b"five", 29)]
    assert not look.restart
    assert follower.look() == Look()


def test_the_look_goes_on_where_the_backwards_read_began(log, follower):
    newest_first = follower.backwards()
    append(log, b"four\n")
    assert texts(newest_first) == [b'{"n":3}', b'{"n":2}', b'{"n":1}']
    assert texts(follower.look().records) == [b"four"]


def test_backwards_reads_no_more_than_is_asked_for(log, monkeypatch):
    log.write_bytes(b"x" * 99 + b"\n")
    append(log, (b"y" * 9 + b"\n") * 10_000)
    follower = Follower(str(log), block=1000)
    follower.look()
    reads = []
    read = files._read
    monkeypatch.setattr(files, "_read", lambda *at: reads.append(at[2]) or read(*at))
    assert len(list(islice(follower.backwards(), 150))) == 150
    assert reads == [1000, 1000]


def test_backwards_holds_no_file_open(log, follower):
    reading = follower.backwards()
    next(reading)
    if sys.platform == "linux":
        assert log not in {path.resolve() for path in Path("/proc/self/fd").iterdir()}


def test_backwards_stops_when_the_file_is_replaced_meanwhile(log, tmp_path):
    follower = Follower(str(log), block=8)
    follower.look()
    reading = follower.backwards()
    assert next(reading).data == b'{"n":3}'
    (tmp_path / "new").write_bytes(b"other\n" * 10)
    (tmp_path / "new").replace(log)
    assert list(reading) == []
    assert follower.look().restart


def test_a_torn_line_waits_for_its_newline(log, follower):
    append(log, b"fo")
    assert follower.look() == Look()
    append(log, b"ur")
    assert follower.look() == Look()
    append(log, b"\nfi")
    (record,) = follower.look().records
    assert (record.data, record.offset) == (b"four", 24)
    append(log, b"ve\n")
    (record,) = follower.look().records
    assert (record.data, record.offset) == (b"five", 29)


def test_a_torn_line_at_first_sight_waits_too(log):
    append(log, b"fo")
    follower = Follower(str(log))
    assert follower.look().restart
    assert texts(follower.backwards()) == [b'{"n":3}', b'{"n":2}', b'{"n":1}']
    append(log, b"ur\n")
    assert texts(follower.look().records) == [b"four"]


def test_a_first_line_without_newline_is_no_line_yet(log):
    log.write_bytes(b"torn")
    follower = Follower(str(log))
    assert follower.look().restart
    assert list(follower.backwards()) == []
    assert follower.head() is None
    append(log, b" no more\n")
    assert texts(follower.look().records) == [b"torn no more"]


def test_blank_lines_are_no_records_and_line_ends_are_stripped(log, follower):
    append(log, b"\n  \n\r\nfour\r\n")
    (record,) = follower.look().records
    assert (record.data, record.offset) == (b"four", 30)


def test_bytes_that_are_not_utf8_pass_unchanged(log, follower):
    append(log, b"\xff\xfe\x00\x80\n")
    assert texts(follower.look().records) == [b"\xff\xfe\x00\x80"]


def test_the_head_is_the_first_line(log, follower):
    assert follower.head() == Record(str(log), b'{"n":1}', 0, log.stat().st_mtime)


def test_a_head_longer_than_a_block_is_whole(log):
    log.write_bytes(b"h" * 100 + b"\nrest\n")
    follower = Follower(str(log), block=7)
    follower.look()
    assert follower.head().data == b"h" * 100


def test_nothing_is_known_before_the_first_look(log):
    assert Follower(str(log)).head() is None
    assert list(Follower(str(log)).backwards()) == []


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(b"", id="emptied"),
        pytest.param(LINES[:16], id="cut by a line"),
        pytest.param(LINES[:20], id="cut inside a line"),
        pytest.param(LINES[:16] + b'{"n":9}\n', id="last line changed, same size"),
        pytest.param(b'{"n":0}\n' + LINES[8:], id="first line changed, same size"),
        pytest.param(b'{"longer":0}\n' + LINES[8:], id="first line longer"),
        pytest.param(LINES[:16] + b'{"n":33,"and":"more"}\n{"n":4}\n', id="rolled back and written on"),
    ],
)
def test_what_was_seen_and_changed_is_a_restart(log, follower, after):
    rewrite(log, after)
    assert follower.look() == Look(restart=True)
    whole = after[: after.rfind(b"\n") + 1]
    assert texts(follower.backwards()) == whole.splitlines()[::-1]
    append(log, b"\nlast\n")
    assert texts(follower.look().records)[-1] == b"last"


def test_a_torn_line_that_is_taken_back_is_a_restart(log, follower):
    append(log, b"torn")
    follower.look()
    rewrite(log, LINES + b"t")
    assert follower.look().restart
    assert texts(follower.backwards()) == [b'{"n":3}', b'{"n":2}', b'{"n":1}']


def test_a_torn_line_that_becomes_another_line_is_a_restart(log, follower):
    append(log, b"torn")
    follower.look()
    rewrite(log, LINES + b"a\nb\nc")
    assert follower.look().restart
    assert texts(islice(follower.backwards(), 2)) == [b"b", b"a"]


def test_a_file_renamed_over_it_is_a_restart(log, follower, tmp_path):
    new = tmp_path / "new"
    new.write_bytes(LINES + b"four\n")
    new.replace(log)
    assert follower.look() == Look(restart=True)
    assert texts(islice(follower.backwards(), 1)) == [b"four"]


def test_a_rewrite_is_noticed_where_it_lies_beyond_the_remembered_ends(log):
    log.write_bytes(b'{"title":"a"}\n' + b"x" * 5000 + b"\n")
    follower = Follower(str(log))
    follower.look()
    log.write_bytes(b'{"title":"b"}\n' + b"x" * 5000 + b"\nmore\n")
    assert follower.look().restart


def test_the_remembered_head_grows_with_the_file(log, follower):
    append(log, b"x" * 3000 + b"\n")
    assert len(follower.look().records) == 1
    rewrite(log, LINES.replace(b"2", b"7") + b"x" * 3000 + b"\n")
    assert follower.look().restart


def test_a_touch_says_nothing(log, follower):
    os.utime(log, (1, 1))
    assert follower.look() == Look()


def test_a_file_that_vanished_is_gone_and_its_return_is_a_restart(log, follower):
    log.unlink()
    assert follower.look() == Look(gone=True)
    assert follower.look() == Look(gone=True)
    assert list(follower.backwards()) == []
    log.write_bytes(LINES)
    assert follower.look() == Look(restart=True)


def test_a_file_in_a_folder_that_became_a_file_is_gone(log):
    assert Follower(str(log / "inside")).look() == Look(gone=True)


def test_a_folder_or_a_pipe_in_its_place_is_an_error(tmp_path):
    assert Follower(str(tmp_path)).look().error
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert Follower(str(tmp_path / "pipe")).look() == Look(error="not a regular file")


def test_a_denied_file_is_an_error_and_goes_on_afterwards(log, follower, monkeypatch):
    append(log, b"four\n")
    with monkeypatch.context() as patch:
        patch.setattr(files, "_open", denied)
        assert follower.look() == Look(error="permission denied")
        assert list(follower.backwards()) == []
    assert texts(follower.look().records) == [b"four"]


def denied(path: str, flags: int) -> int:
    raise PermissionError(13, "Permission denied", path)


@pytest.mark.skipif(
    sys.platform == "win32" or not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may"
)
def test_a_file_that_really_is_denied(log):
    log.chmod(0)
    assert Follower(str(log)).look() == Look(error="permission denied")


@pytest.mark.parametrize("size", [128 * 1024, 20 * 1024 * 1024])
def test_a_huge_line_is_whole_both_ways(log, follower, size):
    huge = b"h" * size
    append(log, huge)
    follower.look()
    append(log, b"\nlast\n")
    fresh = Follower(str(log))
    assert fresh.look().restart
    assert texts(islice(fresh.backwards(), 3)) == [b"last", huge, b'{"n":3}']
    assert texts(follower.look().records) == [huge, b"last"]


def test_a_huge_line_that_comes_in_pieces_is_read_twice_at_most(log, follower, monkeypatch):
    reads = []
    read = files._read
    monkeypatch.setattr(files, "_read", lambda *at: reads.append(at[2]) or read(*at))
    piece = b"h" * 100_000
    for _ in range(100):
        append(log, piece)
        assert follower.look() == Look()
    append(log, b"\n")
    assert texts(follower.look().records) == [piece * 100]
    assert sum(reads) < 2.1 * len(piece) * 100


def test_a_backlog_is_read_backwards(log):
    follower = Follower(str(log), backlog=10)
    follower.look()
    append(log, b"four\nfive\nsix\n")
    assert follower.look() == Look(restart=True)
    assert texts(islice(follower.backwards(), 1)) == [b"six"]


class Histories(RuleBasedStateMachine):
    """Whatever a writer does, what was gathered look by look is what the file says from scratch.

    Files stay so small that the remembered ends cover them: then no rewrite at all can hide.
    """

    pieces = st.lists(
        st.sampled_from([b"a", b"bb", b"\n", b"\n\n", b"\r\n", b"\xff", b"ccc\n", b"d" * 40]), max_size=6
    ).map(b"".join)

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "log"
        self.content: bytes | None = None
        self.gathered: list[Record] = []
        self.looked = False

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize(block=st.sampled_from([2, 7, 64, 4096]))
    def follow(self, block: int) -> None:
        self.follower = Follower(str(self.path), block=block, backlog=150)

    @precondition(lambda self: len(self.content or b"") < files.MARK)
    @rule(piece=pieces)
    def append(self, piece: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(piece)
        self.content = (self.content or b"") + piece
        self.looked = False

    @rule(content=pieces)
    def replace(self, content: bytes) -> None:
        new = self.path.with_name("new")
        new.write_bytes(content)
        new.replace(self.path)
        self.content = content
        self.looked = False

    @rule(start=st.integers(0, 500), piece=pieces)
    def rewrite(self, start: int, piece: bytes) -> None:
        old = self.content or b""
        start = min(start, len(old))
        self.content = old[:start] + piece + old[start + len(piece) :]
        self.path.touch()
        rewrite(self.path, self.content)
        self.looked = False

    @rule(size=st.integers(0, 500))
    def truncate(self, size: int) -> None:
        self.path.touch()
        self.content = (self.content or b"")[:size]
        os.truncate(self.path, len(self.content))
        self.looked = False

    @rule()
    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.content = None
        self.looked = False

    @rule(some=st.integers(0, 3))
    def look(self, some: int) -> None:
        look = self.follower.look()
        if look.gone:
            self.gathered = []
        elif look.restart:
            list(islice(self.follower.backwards(), some))  # stopping early changes nothing
            self.gathered = list(self.follower.backwards())[::-1]
        self.gathered += look.records
        self.looked = True

    @invariant()
    def gathered_is_what_is_there(self) -> None:
        assert len(self.content or b"") < 2 * files.MARK
        if self.looked:
            assert [(r.offset, r.data) for r in self.gathered] == from_scratch(self.content or b"")


def from_scratch(content: bytes) -> list[tuple[int, bytes]]:
    lines, offset = [], 0
    for line in content.split(b"\n")[:-1]:
        if line.strip():
            lines.append((offset, line.rstrip(b"\r")))
        offset += len(line) + 1
    return lines


Histories.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
test_whatever_a_writer_does = Histories.TestCase


# A document


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    path.write_bytes(b'{"status":"busy"}\n')
    return path


def test_a_document_is_one_record_each_time_it_changes(document):
    following = Document(str(document))
    assert following.look() == Look(
        (Record(str(document), b'{"status":"busy"}\n', 0, document.stat().st_mtime),)
    )
    assert following.look() == Look()
    document.write_bytes(b'{"status":"idle"}\n')
    assert texts(following.look().records) == [b'{"status":"idle"}\n']


def test_a_document_changed_within_one_tick_of_the_clock_is_noticed(document):
    os.utime(document, ns=(0, 0))
    following = Document(str(document))
    following.look()
    rewrite(document, b'{"status":"idle"}\n')
    os.utime(document, ns=(0, 0))
    assert texts(following.look().records) == [b'{"status":"idle"}\n']


def test_a_touched_document_is_said_again(document):
    following = Document(str(document))
    following.look()
    os.utime(document, ns=(0, 0))
    assert len(following.look().records) == 1


def test_an_empty_document_says_nothing_until_it_is_written(document):
    following = Document(str(document))
    rewrite(document, b"")
    assert following.look() == Look()
    rewrite(document, b"{}")
    assert texts(following.look().records) == [b"{}"]


def test_a_document_emptied_and_written_anew_is_said_again(document):
    following = Document(str(document))
    following.look()
    rewrite(document, b"")
    assert following.look() == Look()
    rewrite(document, b'{"status":"busy"}\n')
    assert len(following.look().records) == 1


def test_a_document_over_the_cap_is_not_read(document):
    following = Document(str(document), most=17)
    assert following.look() == Look(error="too large")
    rewrite(document, b"small")
    assert texts(following.look().records) == [b"small"]


def test_a_document_that_vanished_is_gone_and_comes_back(document):
    following = Document(str(document))
    following.look()
    kept = document.rename(document.with_name("kept"))
    assert following.look() == Look(gone=True)
    kept.rename(document)
    assert len(following.look().records) == 1


# A presence


def test_a_presence_is_never_opened(document, monkeypatch):
    monkeypatch.setattr(files, "_open", denied)
    following = Presence(str(document))
    assert following.look() == Look((Record(str(document), b"", 0, document.stat().st_mtime),))
    assert following.look() == Look()
    os.utime(document, (5, 5))
    assert following.look() == Look((Record(str(document), b"", 0, 5.0),))
    document.unlink()
    assert following.look() == Look(gone=True)


# A stamp


@pytest.mark.parametrize("by_opening", [False, True])
def test_a_stamp_changes_with_the_file(document, by_opening):
    before = stamp(str(document), by_opening=by_opening)
    append(document, b"more")
    after = stamp(str(document), by_opening=by_opening)
    assert after.size == before.size + 4
    document.unlink()
    assert stamp(str(document), by_opening=by_opening) is None
