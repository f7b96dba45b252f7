"""Terminal programs: how each is known, and how the tab or pane of a process is found in it. One row per kind.

Most show one terminal in each window, or let no program choose among their tabs: for these, the window is all.
Nothing is ever typed into a terminal; what is asked is the program's own interface, and that may be switched off.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from island.desktop.programs import ProgramError, local_socket, run
from island.sources.terminals import Place


class NoTabError(Exception):
    """The tab cannot be found or chosen; the text says why, to the user."""


@dataclass(frozen=True, slots=True)
class Tab:
    """Where a process runs within a terminal program, as its surroundings tell."""

    pid: int
    place: Place
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Terminal:
    """One row: programs that are asked in the same way.

    names: of their processes, as `known_as` makes them; select: brings a process's tab to the front of its window;
    front: tells whether it is there; raises: `select` brings the window, too; editor: the command of an editor, of
    which nobody can tell whether the user looks at its terminal or at its text.
    """

    names: tuple[str, ...]
    select: Callable[[Tab], None] | None = None
    front: Callable[[Tab], bool] | None = None
    raises: bool = False
    editor: bool = False


def known_as(name: str) -> str:
    """Return a process's name as the table has it: "Code Helper (Plugin)" is code, "WezTerm-GUI.exe" wezterm-gui."""
    return name.casefold().removesuffix(".exe").partition(" helper")[0]


def _variable(tab: Tab, name: str, lacking: str) -> str:
    value = tab.environ.get(name, "")
    if not value:
        raise NoTabError(lacking)
    return value


# -- kitty, on its own socket (https://sw.kovidgoyal.net/kitty/rc_protocol/) --------------------------------

KITTY_BEGIN, KITTY_END = b"\x1bP@kitty-cmd", b"\x1b\\"
KITTY_VERSION = (0, 20, 0)  # of the commands below, which are older


def _kitty(tab: Tab, command: str, **payload: object) -> Any:
    """Give kitty a command and return its answer: its own client takes a second to start."""
    to = _variable(tab, "KITTY_LISTEN_ON", "kitty takes no commands, as allow_remote_control and listen_on are not set")
    asked = {"cmd": command, "version": KITTY_VERSION, "no_response": False, "payload": payload}
    with local_socket(to.removeprefix("unix:").replace("@", "\0", 1)) as line:
        line.sendall(KITTY_BEGIN + json.dumps(asked).encode() + KITTY_END)
        said = b""
        while not said.endswith(KITTY_END):
            said += line.recv(1 << 16) or KITTY_END
    answer = json.loads(said.removeprefix(KITTY_BEGIN).removesuffix(KITTY_END))
    if not answer["ok"]:
        raise NoTabError(f"kitty: {answer.get('error', 'no')}")
    return answer.get("data")


def _kitty_number(tab: Tab) -> int:
    return int(_variable(tab, "KITTY_WINDOW_ID", "kitty did not number its window"))


def _select_kitty(tab: Tab) -> None:
    _kitty(tab, "focus-window", match=f"id:{_kitty_number(tab)}")


def _front_kitty(tab: Tab) -> bool:
    number = _kitty_number(tab)
    return any(outer["is_focused"] and inner["is_focused"] and window["is_focused"] and window["id"] == number
               for outer in json.loads(_kitty(tab, "ls")) for inner in outer["tabs"] for window in inner["windows"])


# -- WezTerm (https://wezterm.org/cli/cli/) -----------------------------------------------------------------


def _wezterm(tab: Tab, *command: str) -> str:
    place = {name: value for name in ("WEZTERM_UNIX_SOCKET",) if (value := tab.environ.get(name))}
    return run("wezterm", "cli", *command, environ=place)


def _pane(tab: Tab) -> str:
    return _variable(tab, "WEZTERM_PANE", "WezTerm did not number its pane")


def _select_wezterm(tab: Tab) -> None:
    listed: list[dict[str, Any]] = json.loads(_wezterm(tab, "list", "--format", "json"))
    if not any(str(one.get("pane_id")) == _pane(tab) and one.get("tty_name") in (None, tab.place.tty)
               for one in listed):
        raise NoTabError("WezTerm does not know its pane any more")
    _wezterm(tab, "activate-pane", "--pane-id", _pane(tab))


def _front_wezterm(tab: Tab) -> bool:
    clients = json.loads(_wezterm(tab, "list-clients", "--format", "json"))
    return len(clients) == 1 and str(clients[0].get("focused_pane_id")) == _pane(tab)


# -- Konsole, by D-Bus --------------------------------------------------------------------------------------


def _by_bus(service: str, path: str, interface: str, member: str, signature: str, *body: Any) -> list[Any]:
    """Ask a service of the session bus. Raise NoTabError if it does not answer."""
    from island.desktop.bus import BusError, Peer, ask  # noqa: PLC0415 - its library is there on Linux alone

    try:
        return ask(Peer(service, path, interface), member, signature, *body)
    except BusError as error:
        raise NoTabError(str(error)) from error


def _konsole(tab: Tab, kind: str, member: str, signature: str = "", *body: Any) -> list[Any]:
    service = _variable(tab, "KONSOLE_DBUS_SERVICE", "Konsole is not on the session bus")
    path = _variable(tab, f"KONSOLE_DBUS_{kind.upper()}", "Konsole did not name its tab")
    return _by_bus(service, path, f"org.kde.konsole.{kind}", member, signature, *body)


def _konsole_session(tab: Tab) -> int:
    """Return the number of a process's session, if that session still runs it."""
    shell = _konsole(tab, "Session", "processId")[0]
    if shell not in (tab.pid, *tab.place.above):
        raise NoTabError("Konsole runs something else in its tab")
    return int(tab.environ["KONSOLE_DBUS_SESSION"].rpartition("/")[2])


def _select_konsole(tab: Tab) -> None:
    number = _konsole_session(tab)
    if str(number) not in _konsole(tab, "Window", "sessionList")[0]:
        raise NoTabError("Konsole has moved its tab to another window")
    _konsole(tab, "Window", "setCurrentSession", "i", number)


def _front_konsole(tab: Tab) -> bool:
    return bool(_konsole(tab, "Window", "currentSession")[0] == _konsole_session(tab))


# -- GNOME Terminal, by D-Bus: it answers GNOME's search for a tab ------------------------------------------


def _select_gnome_terminal(tab: Tab) -> None:
    screen = _variable(tab, "GNOME_TERMINAL_SCREEN", "GNOME Terminal did not name its tab")
    ident = screen.rpartition("/")[2].replace("_", "-")
    search = ("org.gnome.Terminal", "/org/gnome/Terminal/SearchProvider", "org.gnome.Shell.SearchProvider2")
    try:
        _by_bus(*search, "ActivateResult", "sasu", ident, [], 0)
    except NoTabError:
        raise NoTabError("GNOME Terminal lets nobody choose a tab unless shell-integration-enabled is set") from None


# -- macOS, by AppleScript: a tab is found by its tty -------------------------------------------------------

ITERM = """on run argv
tell application "iTerm2"
  repeat with w in windows
    repeat with t in tabs of w
      repeat with s in sessions of t
        if tty of s is item 1 of argv then
          select w
          select t
          select s
          activate
          return "found"
        end if
      end repeat
    end repeat
  end repeat
end tell
end run"""

APPLE_TERMINAL = """on run argv
tell application "Terminal"
  repeat with w in windows
    repeat with t in tabs of w
      if tty of t is item 1 of argv then
        set selected of t to true
        set index of w to 1
        activate
        return "found"
      end if
    end repeat
  end repeat
end tell
end run"""


def _by_script(script: str) -> Callable[[Tab], None]:
    def select(tab: Tab) -> None:
        if sys.platform == "darwin" and not tab.place.tty:
            raise NoTabError("its terminal is not known")
        if run("osascript", "-e", script, tab.place.tty).strip() != "found":
            raise NoTabError("none of its tabs has this terminal")

    return select


TERMINALS: tuple[Terminal, ...] = (
    Terminal(("kitty",), _select_kitty, _front_kitty),
    Terminal(("wezterm-gui", "wezterm"), _select_wezterm, _front_wezterm),
    Terminal(("konsole", "yakuake"), _select_konsole, _front_konsole),
    Terminal(("gnome-terminal-server", "gnome-terminal-"), _select_gnome_terminal, raises=True),
    Terminal(("iterm2",), _by_script(ITERM), raises=True),
    Terminal(("terminal",), _by_script(APPLE_TERMINAL), raises=True),
    Terminal(("conhost", "openconsole")),
    Terminal((
        "alacritty", "contour", "cool-retro-term", "deepin-terminal", "foot", "footclient", "ghostty", "guake", "kgx",
        "lxterminal", "mate-terminal", "mintty", "mlterm", "ptyxis", "qterminal", "rio", "sakura", "st", "tabby",
        "terminator", "terminology", "tilda", "tilix", "urxvt", "urxvtd", "rxvt", "warp", "windowsterminal", "wterm",
        "xfce4-terminal", "xterm", "uxterm", "zutty",
    )),
    Terminal(("code", "code-insiders", "code-oss", "codium", "vscodium", "cursor", "windsurf", "trae", "positron",
              "antigravity", "kiro", "electron"), editor=True),
)

#: What comes of an answer of another shape: of a version that island does not know.
FOREIGN = (ValueError, LookupError, TypeError, AttributeError)

BY_NAME: Mapping[str, Terminal] = {name: terminal for terminal in TERMINALS for name in terminal.names}


def select(terminal: Terminal, tab: Tab) -> str:
    """Bring a tab to the front of its window; return what stood in the way, or nothing."""
    if terminal.select is None:
        return "it lets no program choose among its tabs"
    try:
        terminal.select(tab)
    except (NoTabError, ProgramError, OSError) as error:
        return str(error)
    except FOREIGN:
        return f"{terminal.names[0]} answers what island does not know"
    return ""


def in_front(terminal: Terminal, tab: Tab) -> bool:
    """Tell whether a tab is surely in front of its window."""
    try:
        return terminal.front is not None and terminal.front(tab)
    except (NoTabError, ProgramError, OSError, *FOREIGN):
        return False
