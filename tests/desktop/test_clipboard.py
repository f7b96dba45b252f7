"""The clipboard, and files handed to the desktop."""

import subprocess
import sys
import time

import pytest

from island.desktop import opening
from island.desktop.clipboard import copy
from island.desktop.opening import open_path
from island.desktop.programs import start

from .stage import wait_until
from .test_windows import program

pytestmark = [pytest.mark.desktop, pytest.mark.skipif(sys.platform == "win32", reason="programs are scripts here")]


def paste(selection, target):
    """Ask for a selection as another program does."""
    from Xlib import X
    from Xlib.display import Display

    display = Display()
    try:
        window = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        place = display.intern_atom("PASTED")
        window.convert_selection(display.intern_atom(selection), display.intern_atom(target), place, X.CurrentTime)
        event = display.next_event()
        while event.type != X.SelectionNotify:
            event = display.next_event()
        if event.property == X.NONE:
            return None
        value = window.get_full_property(place, X.AnyPropertyType).value
        return [display.get_atom_name(atom) for atom in value] if target == "TARGETS" else bytes(value)
    finally:
        display.close()


def own(text):
    """Copy as another program does."""
    from Xlib import X
    from Xlib.display import Display

    display = Display()
    window = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
    for name in ("CLIPBOARD", "PRIMARY"):
        window.set_selection_owner(display.intern_atom(name), X.CurrentTime)
    display.sync()
    return display


@pytest.mark.usefixtures("display")
def test_a_text_is_pasted_until_somebody_else_copies(monkeypatch):
    import threading

    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert copy("0bc18d25 ä") == ""
    for selection in ("CLIPBOARD", "PRIMARY"):
        for target in ("UTF8_STRING", "STRING"):
            assert paste(selection, target) == "0bc18d25 ä".encode()
    assert paste("CLIPBOARD", "TARGETS") == ["TARGETS", "UTF8_STRING", "STRING"]
    assert paste("CLIPBOARD", "image/png") is None
    assert copy("another") == ""
    assert paste("CLIPBOARD", "UTF8_STRING") == b"another"
    other = own("theirs")
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "clipboard"])
    other.close()


@pytest.mark.parametrize(("environ", "platform", "copier"), [
    ({}, "darwin", "pbcopy"), ({}, "win32", "clip"), ({"WAYLAND_DISPLAY": "w"}, "linux", "wl-copy"),
])
def test_the_systems_own_program_gets_the_text(tmp_path, monkeypatch, environ, platform, copier):
    program(tmp_path / copier, f"cat > {tmp_path}/copied; sleep 600 & echo $! > {tmp_path}/child")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    began = time.monotonic()
    assert copy("s1", environ, platform) == ""
    assert (tmp_path / "copied").read_text() == "s1"
    assert time.monotonic() - began < 500  # what it leaves behind is not waited for
    subprocess.run(["kill", (tmp_path / "child").read_text().strip()], check=True)


def test_without_a_clipboard_there_is_a_word(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert copy("s1", {}, "linux") == "there is no clipboard here"
    assert copy("s1", {"WAYLAND_DISPLAY": "w"}, "linux") == "wl-copy is not installed"
    program(tmp_path / "wl-copy", "exit 4")
    assert copy("s1", {"WAYLAND_DISPLAY": "w"}, "linux") == "wl-copy ended with 4"
    monkeypatch.setenv("DISPLAY", ":nothing")
    assert copy("s1", {"DISPLAY": ":nothing"}, "linux").startswith("the X server does not answer")


def told(folder):
    return (folder / "said").read_text() if (folder / "said").exists() else ""


@pytest.mark.parametrize(("platform", "opener", "said"), [
    ("linux", "xdg-open", "{file}\n{folder}\n"), ("darwin", "open", "-t {file}\n{folder}\n"),
])
def test_a_file_is_handed_to_the_desktop(tmp_path, monkeypatch, platform, opener, said):
    program(tmp_path / opener, f'echo "$@" >> {tmp_path}/said')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(opening.sys, "platform", platform)
    file, folder = tmp_path / "page.txt", tmp_path / "folder"
    file.write_text("text")
    folder.mkdir()
    assert open_path(file) == ""
    wait_until(lambda: told(tmp_path))
    assert open_path(folder) == ""
    want = said.format(file=file, folder=folder)
    wait_until(lambda: told(tmp_path) == want)
    assert open_path(tmp_path / "gone") == f"{tmp_path}/gone is not there"


def test_without_an_opener_there_is_a_word_with_the_path(tmp_path, monkeypatch):
    monkeypatch.setattr(opening.sys, "platform", "linux")
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert open_path(tmp_path) == f"{tmp_path} cannot be opened: xdg-open is not installed"


def test_a_program_that_goes_its_own_way_leaves_no_zombie(tmp_path, monkeypatch):
    import psutil

    program(tmp_path / "brief", f"echo $$ > {tmp_path}/pid")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    start("brief")
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not psutil.pid_exists(pid))
