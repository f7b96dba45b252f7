"""The full look: finds what the patterns name, at their depth, and is stopped by nothing."""

from __future__ import annotations

import glob
import os
import sys
from pathlib import Path

import pytest

from island.sources import sweep as module
from island.sources.sweep import Found, matcher, sweep


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def names(folder: Path, *patterns: str, newer_than: float = 0.0) -> list[str]:
    found = sweep([f"{glob.escape(str(folder))}/{pattern}" for pattern in patterns], newer_than)
    return sorted(Path(file.path).relative_to(folder).as_posix() for file in found)


def test_a_file_is_found_with_its_time_and_size(tmp_path):
    make(tmp_path, "p/one.jsonl")
    os.utime(tmp_path / "p/one.jsonl", (7, 7))
    assert sweep([f"{tmp_path}/*/*.jsonl"]) == [Found(str(tmp_path / "p/one.jsonl"), 7.0, 11)]


def test_a_star_stays_in_its_folder(tmp_path):
    make(tmp_path, "a.jsonl", "p/b.jsonl", "p/q/c.jsonl", "p/b.txt")
    assert names(tmp_path, "*.jsonl") == ["a.jsonl"]
    assert names(tmp_path, "*/*.jsonl") == ["p/b.jsonl"]
    assert names(tmp_path, "*/*/*.jsonl") == ["p/q/c.jsonl"]
    assert names(tmp_path, "q*/*.jsonl", "?/*.txt") == ["p/b.txt"]


def test_plain_parts_are_not_listed(tmp_path, monkeypatch):
    make(tmp_path, "p/one/subagents/agent-1.jsonl", "p/one/other/agent-2.jsonl", "index.jsonl")
    listed = []
    real = os.scandir
    monkeypatch.setattr(module.os, "scandir", lambda folder: listed.append(folder) or real(folder))
    assert names(tmp_path, "p/*/subagents/agent-*.jsonl", "index.jsonl") == [
        "index.jsonl",
        "p/one/subagents/agent-1.jsonl",
    ]
    assert listed == [str(tmp_path / "p"), str(tmp_path / "p/one/subagents")]


def test_patterns_share_a_listing_and_a_file_comes_once(tmp_path, monkeypatch):
    make(tmp_path, "p/one.jsonl", "p/one/subagents/agent-1.jsonl")
    listed = []
    real = os.scandir
    monkeypatch.setattr(module.os, "scandir", lambda folder: listed.append(folder) or real(folder))
    assert names(tmp_path, "*/*.jsonl", "*/o*.jsonl", "*/one.jsonl", "*/*/subagents/*.jsonl") == [
        "p/one.jsonl",
        "p/one/subagents/agent-1.jsonl",
    ]
    assert len(listed) == len(set(listed)) == 3


def test_one_name_may_be_a_file_here_and_a_folder_there(tmp_path):
    make(tmp_path, "a/x", "b/x/deep")
    assert names(tmp_path, "*/x", "*/x/deep") == ["a/x", "b/x/deep"]


def test_old_files_are_left_out(tmp_path):
    make(tmp_path, "old", "new")
    os.utime(tmp_path / "old", (100, 100))
    os.utime(tmp_path / "new", (200, 200))
    assert names(tmp_path, "*", newer_than=100) == ["new"]


@pytest.mark.posix("such names")
def test_question_marks_sets_and_escaped_folders(tmp_path):
    home = tmp_path / "a[b]*"
    make(home, "s1.json", "s2.json", "s10.json", "sx.json")
    assert names(home, "s?.json") == ["s1.json", "s2.json", "sx.json"]
    assert names(home, "s[0-9].json") == ["s1.json", "s2.json"]


def test_missing_folders_files_in_their_place_and_folders_named_like_files(tmp_path):
    make(tmp_path, "file")
    (tmp_path / "folder.jsonl").mkdir()
    assert names(tmp_path, "missing/*.jsonl", "file/*.jsonl", "*.jsonl", "missing.json") == []


@pytest.mark.posix("links for everybody")
def test_links_are_followed_to_the_patterns_depth_and_loops_end(tmp_path):
    make(tmp_path / "real", "p/one.jsonl")
    (tmp_path / "root").symlink_to(tmp_path / "real")
    (tmp_path / "real/p/loop").symlink_to(tmp_path / "real")
    (tmp_path / "real/p/nowhere.jsonl").symlink_to(tmp_path / "nothing")
    assert names(tmp_path, "root/*/*.jsonl") == ["root/p/one.jsonl"]
    assert names(tmp_path, "root/*/*/*/*.jsonl") == ["root/p/loop/p/one.jsonl"]


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="their file names are text")
def test_a_name_that_is_no_text_is_found(tmp_path):
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl")).write_text("")
    (found,) = sweep([f"{tmp_path}/*.jsonl"])
    assert os.fsencode(found.path).endswith(b"\xff.jsonl")


def test_a_folder_that_cannot_be_read_is_told_and_the_rest_goes_on(tmp_path, monkeypatch):
    make(tmp_path, "denied/one.jsonl", "open/two.jsonl")
    real = os.scandir

    def scandir(folder):
        if folder == str(tmp_path / "denied"):
            raise PermissionError(13, "Permission denied", folder)
        return real(folder)

    monkeypatch.setattr(module.os, "scandir", scandir)
    errors = []
    found = sweep([f"{tmp_path}/*/*.jsonl"], onerror=errors.append)
    assert [file.path for file in found] == [str(tmp_path / "open/two.jsonl")]
    assert [error.filename for error in errors] == [str(tmp_path / "denied")]
    assert len(sweep([f"{tmp_path}/*/*.jsonl"])) == 1


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/home/a/p/one.jsonl", True),
        ("/home/a/p/one.txt", False),
        ("/home/a/p/q/one.jsonl", False),
        ("/home/a/one.jsonl", False),
        ("/home/a/p/one/subagents/agent-1.jsonl", True),
        ("/home/a/p/one/subagents/note.jsonl", False),
        ("/home/a/index", True),
        ("/", False),
    ],
)
def test_the_matcher_says_what_the_sweep_would_find(path, wanted):
    matches = matcher(["/home/a/*/*.jsonl", "/home/a/*/*/subagents/agent-*.jsonl", "/home/a/index"])
    assert matches(path) is wanted


def test_the_matcher_agrees_with_the_sweep(tmp_path):
    make(tmp_path, "a.jsonl", "p/b.jsonl", "p/q/c.jsonl", "p/b.txt", "p/q/subagents/agent-1.jsonl", "x/index")
    patterns = [f"{tmp_path}/*/*.jsonl", f"{tmp_path}/*/q/*/agent-?.jsonl", f"{tmp_path}/x/index"]
    every = {str(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert {file.path for file in sweep(patterns)} == set(filter(matcher(patterns), every))
