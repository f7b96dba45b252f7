"""What is kept in island's own folders: settings read, and what was silenced written."""

import os

import pytest

from island.quiet import Hush
from island.settings import Settings
from island.store import (
    MOST_BYTES,
    SettingsFile,
    load_hush,
    load_seen,
    save_hush,
    save_seen,
    settings_path,
    state_path,
)

GOOD = "[notices]\nmin_turn = 30\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config" / "config.toml"


def put(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    moment = path.stat().st_mtime_ns + put.count * 1_000_000_000  # two writings may fall into one tick
    put.count += 1
    os.utime(path, ns=(moment, moment))


put.count = 0


def told(file):
    return file.settings.manner.min_turn, file.trouble()


def test_without_a_file_all_is_as_by_default_and_nothing_is_made(path):
    file = SettingsFile(path)
    assert (file.settings, file.trouble(), file.changed()) == (Settings(), "", False)
    assert not path.parent.exists()


def test_a_change_counts_once_it_stands_still(path):
    file = SettingsFile(path)
    put(path, "")
    assert not file.changed()
    put(path, GOOD)
    assert not file.changed()
    assert told(file) == (0, "")
    assert file.changed()
    assert told(file) == (30, "")
    assert not file.changed()


def test_while_anything_is_wrong_the_settings_from_before_stand(path):
    put(path, GOOD)
    file = SettingsFile(path)
    put(path, "[notices]\nmin_turn = 60\nwonder = 1\nthunder = 2\n")
    assert (file.changed(), file.changed()) == (False, True)
    assert told(file) == (30, "config.toml: line 3: notices.wonder: no such setting (and 1 more)")
    put(path, GOOD.replace("30", "60"))
    assert (file.changed(), file.changed()) == (False, True)
    assert told(file) == (60, "")


def test_at_the_first_look_what_is_right_counts(path):
    put(path, "wonder = 1\n" + GOOD)
    assert told(SettingsFile(path)) == (30, "config.toml: line 1: wonder: no such setting")


def test_a_file_that_goes_and_stays_away_takes_its_settings_along(path):
    put(path, GOOD)
    file = SettingsFile(path)
    path.unlink()
    assert not file.changed()
    put(path, GOOD)  # as some editors save
    assert not file.changed()
    path.unlink()
    assert (file.changed(), file.changed()) == (False, True)
    assert told(file) == (0, "")


@pytest.mark.parametrize(("content", "why"), [
    (b"panes = true\n# \xff", "line 2: not UTF-8"), (b"#" * (MOST_BYTES + 1), f"larger than {MOST_BYTES} bytes"),
])
def test_what_is_no_text_of_ours_is_said(path, content, why):
    put(path, content)
    assert told(SettingsFile(path)) == (0, f"config.toml: {why}")


@pytest.mark.posix("these words for a folder")
def test_a_file_that_may_not_be_read_is_said(path):
    path.mkdir(parents=True)
    assert "Is a directory" in SettingsFile(path).trouble()


def test_a_mark_at_the_beginning_of_the_file_is_no_harm(path):
    put(path, b"\xef\xbb\xbf" + GOOD.encode())
    assert told(SettingsFile(path)) == (30, "")


def test_the_folders_are_those_of_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    if os.name == "posix" and os.uname().sysname == "Linux":
        assert settings_path() == tmp_path / "c/island/config.toml"
        assert state_path("quiet.json") == tmp_path / "s/island/quiet.json"


# -- what was silenced ---------------------------------------------------------------------------------------


@pytest.mark.posix("modes")
def test_the_file_is_written_at_once_and_for_its_user_alone(tmp_path):
    path = tmp_path / "state" / "quiet.json"
    for hush in (Hush(snoozed=7.5), Hush(projects=("prôjét",), hidden=True)):
        save_hush(hush, path)
        assert load_hush(path) == (hush, "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_without_a_file_nothing_is_silenced(tmp_path):
    assert load_hush(tmp_path / "quiet.json") == (Hush(), "")


@pytest.mark.parametrize("content", [b"{", b"\xff", b"{}", b"[" * 100_000])
def test_a_file_that_was_spoilt_is_named_and_silences_nothing(tmp_path, content):
    path = tmp_path / "quiet.json"
    path.write_bytes(content)
    hush, why = load_hush(path)
    assert hush == Hush()
    assert why.startswith(f"{path}: ")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "quiet.json"
    save_hush(Hush(snoozed=7), path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_hush(Hush(snoozed=8), path)
    assert load_hush(path)[0] == Hush(snoozed=7)
    assert list(tmp_path.iterdir()) == [path]


# -- what was seen -------------------------------------------------------------------------------------------


@pytest.mark.posix("modes")
def test_what_was_seen_is_kept_in_its_order(tmp_path):
    path = tmp_path / "seen.json"
    assert load_seen(path) == ({}, "")
    save_seen(["b", "a"], path)
    seen, why = load_seen(path)
    assert ([*seen], why, path.stat().st_mode & 0o777) == (["b", "a"], "", 0o600)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"seen": [1]}', b'{"seen": {}}'])
def test_a_list_of_what_was_seen_that_was_spoilt_is_named(tmp_path, content):
    path = tmp_path / "seen.json"
    path.write_bytes(content)
    seen, why = load_seen(path)
    assert seen == {}
    assert why.startswith(f"{path}: ")
