"""Start: arguments, then one command. Without a command, the tray."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TextIO

from island import __version__

#: In the order of the help. A command's module is imported when it is asked for: bars run `status` every few seconds.
COMMANDS = ("status", "watch", "explain", "config", "autostart", "replay", "record", "hooks", "demo", "doctor")

#: Those that look into terminals. `--panes` may stand before them or behind.
LOOKS = frozenset({"status", "watch", "explain", "replay"})

PANES = "read the visible text of tmux panes, for agents that show a question nowhere else"

CODES = """exit codes: 0 all is well; 1 something was found wrong (doctor, replay);
2 the command or a file given to it is not understood; 3 island runs already; 10, 15, 20 status --quiet"""


def parser(wanted: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the command line, with the wanted commands."""
    p = argparse.ArgumentParser(
        prog="island", epilog=CODES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="One tray icon that says whether any of your coding agents needs you now.",
    )
    p.add_argument("--version", action="version", version=f"island {__version__}")
    p.add_argument("-v", "--verbose", action="store_true", help="log what happens to standard error")
    p.add_argument("--panes", action="store_true", help=PANES)
    p.set_defaults(run=_tray)
    commands = p.add_subparsers(title="commands", metavar="COMMAND")
    for name in wanted:
        import_module(f"island.cli.{name}").add_parser(commands)
    for name in LOOKS.intersection(wanted):  # no default: it would undo what stands before the command
        commands.choices[name].add_argument("--panes", action="store_true", default=argparse.SUPPRESS, help=PANES)
    return p


def _tray(arguments: argparse.Namespace) -> int:
    return int(import_module("island.cli.tray").run(arguments))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal without our signs must not end the program.
            stream.reconfigure(encoding=_encoding(stream), errors="replace")
    try:
        return _run(argv)
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _drop_output()
        sys.stderr.write(f"island: the output could not be written: {error.strerror}\n")
        return 2


def _encoding(stream: TextIO, platform: str = sys.platform) -> str | None:
    """Return how an output is written, None if it stays as it is.

    On Windows a file and a pipe would get the code page of the country: the signs are lost, and `island config >
    config.toml` is no file of settings. What reads them (prompts, bars, island itself) takes UTF-8.
    """
    asked = os.environ.get("PYTHONIOENCODING") or stream.isatty()
    return "utf-8" if platform == "win32" and not asked else None


def _drop_output() -> None:
    """Send what is not written yet nowhere; else the interpreter's last flush complains."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: Sequence[str] | None) -> int:
    try:
        argv = sys.argv[1:] if argv is None else argv
        arguments = parser(argv[:1] if argv and argv[0] in COMMANDS else COMMANDS).parse_args(argv)
        level = logging.INFO if arguments.verbose else logging.ERROR
        logging.basicConfig(level=level, format="island: %(message)s")
        return int(arguments.run(arguments))
    except BaseExceptionGroup as several:
        if lost := several.subgroup(OSError):
            raise _first(lost) from several
        raise
    finally:
        if sys.stdout:  # without a console there is none
            sys.stdout.flush()


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


if __name__ == "__main__":
    sys.exit(main())
