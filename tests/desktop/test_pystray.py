"""The icon of macOS and Windows, as far as it can be tried elsewhere: with stand-ins for both systems."""

import asyncio
import ctypes
import importlib
import queue
import sys
import threading
from contextlib import nullcontext
from io import BytesIO
from types import ModuleType, SimpleNamespace

import pytest
from PIL import Image

from island.tray.base import Health
from island.tray.entry import MenuRow, RowKind
from island.tray.face import Face
from island.tray.icon import draw
from island.tray.menu import TrayModel
from island.tray.pystray_backend import LONGEST_TIP, PystrayTray, tip

from .stage import eventually

ROWS = (MenuRow("claude/s1", "a & b"), MenuRow("line", kind=RowKind.SEPARATOR),
        MenuRow("quit", "Quit", enabled=False))
MODEL = TrayModel(Face.YOUR_TURN, 2, "island: 2 waiting", ("web_shop",), attention=True, rows=ROWS)


class Menu:
    SEPARATOR = "---"

    def __init__(self, *items):
        self.items = items


class MenuItem:
    def __init__(self, text, action, *, enabled=True):
        self.text, self.action, self.enabled = text, action, enabled


class Icon:
    """pystray's icon, reduced to what is used of it. Its thread is the one that calls `run`."""

    def __init__(self, name, icon=None, title="", menu=None):
        self._icon, self.title, self.menu, self.visible = icon, title, menu, False
        self._acts = queue.Queue()
        self._running = True
        self.seen = []

    icon = property(lambda self: self._icon, lambda self, value: setattr(self, "_icon", value))

    def run(self, setup):
        self.thread = threading.current_thread()
        threading.Thread(target=setup, args=(self,)).start()
        while self._running:
            self._acts.get(timeout=20)()
            self.seen.append((self.icon, self.title, self.visible))

    def post(self, act):
        self._acts.put(act)

    def stop(self):
        assert threading.current_thread() is self.thread
        self._running = False


def toolkit(icon=Icon):
    return SimpleNamespace(Icon=icon, Menu=Menu, MenuItem=MenuItem, label=lambda text: text.upper())


def test_the_tray_has_the_main_thread_and_the_work_another():
    chosen = []
    tray = PystrayTray(chosen.append, toolkit())

    async def work():
        assert threading.current_thread() is not threading.main_thread()
        await tray.start()
        tray.apply(MODEL)
        await eventually(lambda: tray.health is Health.SHOWN and tray._shown == MODEL)
        icon = tray._icon
        assert icon.thread is threading.main_thread()
        assert icon.visible
        assert (icon.icon, icon.title) == ((Face.YOUR_TURN, 2), "island: 2 waiting\nweb_shop")
        row, line, quit_row = icon.menu.items
        assert (row.text, row.enabled, line, quit_row.enabled) == ("A & B", True, "---", False)
        icon.post(lambda: row.action(icon, row))
        await eventually(lambda: chosen)
        await tray.stop()
        return 7

    assert tray.run(work) == 7
    assert chosen == ["claude/s1"]
    assert tray.health is Health.WAITING_FOR_HOST


def test_only_what_changed_is_set_and_a_menu_item_keeps_its_own_row():
    tray = PystrayTray(print, toolkit())

    async def work():
        await tray.start()
        tray.apply(MODEL)
        await eventually(lambda: tray._shown == MODEL)
        menu = tray._icon.menu
        tray.apply(TrayModel(Face.DONE, rows=ROWS))
        await eventually(lambda: tray._icon.icon == (Face.DONE, 0))
        assert tray._icon.menu is menu
        return 0

    assert tray.run(work) == 0


def test_a_row_that_opens_others_is_a_menu_of_its_own():
    chosen = []
    tray = PystrayTray(chosen.append, toolkit())

    async def work():
        await tray.start()
        tray.apply(TrayModel(rows=(MenuRow("claude/s1", "s1", rows=(MenuRow("jump:claude/s1", "Jump"),)),)))
        await eventually(lambda: tray._icon and tray._icon.menu.items)
        (row,) = tray._icon.menu.items
        assert isinstance(row.action, Menu)
        (inner,) = row.action.items
        tray._icon.post(lambda: inner.action(tray._icon, inner))
        await eventually(lambda: chosen)
        return 0

    assert tray.run(work) == 0
    assert chosen == ["jump:claude/s1"]


def test_work_that_ends_before_the_icon_appears_ends_the_icon_too():
    tray = PystrayTray(print, toolkit())

    async def work():
        return 3

    assert tray.run(work) == 3


def test_work_that_fails_ends_the_icon_too(caplog):
    tray = PystrayTray(print, toolkit())

    async def work():
        raise ZeroDivisionError

    assert tray.run(work) == 1
    assert "ZeroDivisionError" in caplog.text


def test_without_an_icon_the_work_goes_on(caplog):
    tray = PystrayTray(print, toolkit(icon=lambda *_, **__: 1 / 0))

    async def work():
        await tray.start()
        tray.apply(MODEL)
        await tray.stop()
        return 5

    assert tray.run(work) == 5
    assert "goes on without" in caplog.text


def test_an_icon_that_is_ended_from_outside_asks_to_quit():
    over = asyncio.Event()
    tray = PystrayTray(lambda key: over.set() if key == "quit" else None, toolkit())

    async def work():
        await tray.start()
        await eventually(lambda: tray.health is Health.SHOWN)
        tray._icon.post(tray._icon.stop)
        await over.wait()
        return 0

    assert tray.run(work) == 0


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_a_balloon_is_shown_at_the_icon_of_windows_cut_to_what_it_takes(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    shown, acts = [], []
    tray = PystrayTray(print, toolkit())
    if platform == "darwin":
        assert tray.balloon is None
        return
    tray.balloon("t", "b")  # there is no icon yet
    tray._icon = SimpleNamespace(post=acts.append, notify=lambda *texts: shown.append(texts))
    tray.balloon("t" * 99, "👩" * 200)
    acts[0]()
    assert shown == [("👩" * 127, "t" * 63)]


def test_a_tooltip_is_cut_to_what_windows_takes():
    fits = TrayModel(title="i" * 100, lines=("a" * 26, "b"))
    assert tip(fits) == "i" * 100 + "\n" + "a" * 26
    emoji = tip(TrayModel(title="👩" * 100))
    assert emoji == "👩" * 63
    assert len(emoji.encode("utf-16-le")) // 2 <= LONGEST_TIP


# -- Windows ------------------------------------------------------------------------------------------------

class WindowsIcon(Icon):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self._hwnd, self._icon_handle, self._message_handlers = None, None, {}
        self.menus = []

    def _on_notify(self, wparam, lparam):
        self.menus.append(lparam)
        self.in_menu()

    def _on_stop(self, wparam, lparam):
        self.menus.append("stopped")

    def in_menu(self):
        pass


@pytest.fixture
def windows(monkeypatch):
    calls = []
    native = SimpleNamespace(
        PostMessage=lambda *message: calls.append(message), IMAGE_ICON=1, LR_LOADFROMFILE=16,
        LoadImage=lambda *image: calls.append(image) or f"handle {len(calls)}")
    user32 = SimpleNamespace(
        size=16, GetDpiForSystem=lambda: 96, GetSystemMetricsForDpi=lambda *_: user32.size,
        SetProcessDpiAwarenessContext=lambda _: None, EndMenu=lambda: calls.append("menu ended"))
    kernel32 = SimpleNamespace(SetConsoleCtrlHandler=lambda act, on: calls.append((act, on)))
    monkeypatch.setattr(ctypes, "WinDLL", {"user32": user32, "kernel32": kernel32}.get, raising=False)
    monkeypatch.setattr(ctypes, "WINFUNCTYPE", lambda *_: lambda act: act, raising=False)
    module = fresh(monkeypatch, "island.tray.win32", {
        "pystray": {"Icon": WindowsIcon, "Menu": Menu, "MenuItem": MenuItem},
        "pystray._util": {"win32": native},
    })
    return SimpleNamespace(module=module, calls=calls, user32=user32)


def test_windows_gets_every_size_drawn_for_itself(windows):
    file = Image.open(BytesIO(windows.module.ico(Face.YOUR_TURN, 3)))
    assert file.info["sizes"] == {(size, size) for size in windows.module.SIZES}
    for size in windows.module.SIZES:
        assert file.ico.getimage((size, size)).tobytes() == draw(Face.YOUR_TURN, size, 3).tobytes()


def test_both_buttons_open_the_menu_and_nothing_changes_under_it(windows):
    icon, done = windows.module.Icon("island"), []
    icon.post(lambda: done.append("before there is a window"))
    icon._hwnd = 42
    icon.post(lambda: done.append("first"))
    assert windows.calls == [(42, windows.module.WM_WORK, 0, 0)]
    on_work = icon._message_handlers[windows.module.WM_WORK]

    def in_menu():
        on_work(0, 0)
        assert done == []

    icon.in_menu = in_menu
    icon._on_notify(0, windows.module.WM_LBUTTONUP)
    assert icon.menus == [windows.module.WM_RBUTTONUP]
    assert done == ["before there is a window", "first"]


@pytest.mark.parametrize("event", ["CTRL_C", "CTRL_BREAK"])
def test_ctrl_c_ends_it_whether_it_waits_has_its_menu_open_or_does_not_run_yet(windows, event):
    icon, stops = windows.module.Icon("island"), []
    icon.stop, icon._running = lambda: stops.append(event), False
    icon.run(lambda _: None)
    (act, on), (same, off) = windows.calls
    assert (on, off, same) == (True, False, act)
    assert act(getattr(windows.module, event)) == 1
    icon._on_work()
    assert stops == [event, event]


@pytest.mark.parametrize("running", [True, False])
def test_windows_that_were_closed_before_its_end_are_no_fault(windows, monkeypatch, running):
    def fail(icon, _):
        icon._running = running
        raise PermissionError

    monkeypatch.setattr(WindowsIcon, "run", fail)
    with pytest.raises(PermissionError) if running else nullcontext():
        windows.module.Icon("island").run(lambda _: None)


def test_its_end_closes_its_menu_first(windows):
    icon = windows.module.Icon("island")
    icon._on_stop(0, 0)
    assert (windows.calls, icon.menus) == (["menu ended"], ["stopped"])


def test_the_user_may_log_off_and_who_asks_it_to_close_is_obeyed(windows):
    icon, stops = windows.module.Icon("island"), []
    icon.stop = lambda: stops.append("stopped")
    answers = icon._message_handlers
    assert answers[windows.module.WM_QUERYENDSESSION](0, 0)
    answers[windows.module.WM_ENDSESSION](0, 0)  # somebody else forbade it
    assert stops == []
    answers[windows.module.WM_ENDSESSION](1, 0)
    answers[windows.module.WM_CLOSE](0, 0)
    assert stops == ["stopped", "stopped"]


def test_windows_handles_are_loaded_once_for_each_face_and_size(windows):
    icon = windows.module.Icon("island")
    handles = []
    for face, size in ((Face.DONE, 16), (Face.IDLE, 16), (Face.DONE, 16), (Face.DONE, 24)):
        icon.icon, windows.user32.size = (face, 0), size
        icon._release_icon()
        icon._assert_icon_handle()
        handles.append(icon._icon_handle)
    assert handles == ["handle 1", "handle 2", "handle 1", "handle 3"]
    assert [image[3:5] for image in windows.calls] == [(16, 16), (16, 16), (24, 24)]


def test_an_ampersand_is_no_shortcut_on_windows(windows):
    assert windows.module.label("a & b") == "a && b"


# -- macOS --------------------------------------------------------------------------------------------------

class Picture:
    """Stands for NSImage and its like: keeps what it was told."""

    def __init__(self, *parts):
        self.parts, self.said = list(parts), {}

    def __getattr__(self, name):
        def hear(value):
            self.said[name] = value
            self.parts.append(value)
            return self
        return hear


@pytest.fixture
def macos(monkeypatch):
    later, buttons = [], []
    system = SimpleNamespace(mode="default", policy=None)
    appkit = {
        "NSEventTrackingRunLoopMode": "tracking",
        "NSRunLoop": SimpleNamespace(mainRunLoop=lambda: SimpleNamespace(currentMode=lambda: system.mode)),
        "NSApplication": SimpleNamespace(sharedApplication=lambda: SimpleNamespace(
            setActivationPolicy_=lambda policy: setattr(system, "policy", policy))),
        "NSImage": SimpleNamespace(alloc=Picture),
        "NSBitmapImageRep": SimpleNamespace(imageRepWithData_=Picture),
        "NSData": SimpleNamespace(dataWithBytes_length_=lambda file, length: file[:length]),
    }
    apphelper = SimpleNamespace(
        callAfter=lambda act, *args: later.append((0, act, args)),
        callLater=lambda delay, act, *args: later.append((delay, act, args)))
    module = fresh(monkeypatch, "island.tray.darwin", {
        "pystray": {"Icon": Icon, "Menu": Menu, "MenuItem": MenuItem},
        "AppKit": appkit, "PyObjCTools": {"AppHelper": apphelper},
    })
    icon = module.Icon("island")
    icon._status_item = SimpleNamespace(button=lambda: SimpleNamespace(setImage_=buttons.append))
    return SimpleNamespace(module=module, icon=icon, later=later, buttons=buttons, system=system)


@pytest.mark.parametrize(("face", "template"), [
    (Face.IDLE, True), (Face.WORKING, True), (Face.YOUR_TURN, False),
])
def test_macos_gets_sharp_pictures_and_its_own_colour_for_quiet_ones(macos, face, template):
    macos.icon.icon = (face, 0)
    macos.icon._assert_image()
    (picture,) = macos.buttons
    assert picture.said["setTemplate_"] is template
    pixels = [part for part in picture.parts if isinstance(part, Picture)]
    assert [Image.open(BytesIO(p.parts[0])).size for p in pixels] == [(18, 18), (36, 36)]
    assert [p.said["setSize_"] for p in pixels] == [(18, 18), (18, 18)]


def test_on_macos_nothing_changes_under_an_open_menu(macos):
    done = []
    macos.icon.post(lambda: done.append("changed"))
    macos.system.mode = "tracking"
    for _ in range(3):
        (_, act, args) = macos.later.pop()
        act(*args)
        assert done == []
    macos.system.mode = "default"
    (delay, act, args) = macos.later.pop()
    act(*args)
    assert (delay, done) == (macos.module.MENU_CHECK, ["changed"])


def test_macos_has_no_icon_in_the_dock(macos):
    macos.icon._running = False
    macos.icon.run(lambda _: None)
    assert macos.system.policy == macos.module.ACCESSORY
    assert macos.module.label("a & b") == "a & b"


def fresh(monkeypatch, name, stand_ins):
    """Import a module of one system with stand-ins for what that system has."""
    for stand_in, names in stand_ins.items():
        module = ModuleType(stand_in)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, stand_in, module)
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module(name)
    monkeypatch.delitem(sys.modules, name)
    return module
