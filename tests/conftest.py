"""Profiles of the property tests, and what tests need where POSIX is not there."""

import ctypes
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from platformdirs.windows import Windows

settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), max_examples=500, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

ON_WINDOWS = sys.platform == "win32"
UNDER_WINE = ON_WINDOWS and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")

#: What only Linux has: tests that begin with it are of its desktops, or of POSIX terminals and signals.
LINUX_ALONE = re.compile(r"^(import|from) (dbus_fast|pty|Xlib|\.desk|\.fakes)\b", re.MULTILINE)


class Moved(Windows):
    """The folders of Windows, moved by the variables that move those of Linux."""

    @property
    def user_state_dir(self):
        return str(Path(os.environ["XDG_STATE_HOME"], self.appname or ""))

    @property
    def user_config_dir(self):
        return str(Path(os.environ["XDG_CONFIG_HOME"], self.appname or ""))


def pytest_addoption(parser):
    parser.addoption("--rewrite", action="store_true", help="write what island says now into sequences' expect lines")


def pytest_ignore_collect(collection_path):
    """Leave out what cannot even be imported on Windows."""
    if ON_WINDOWS and collection_path.suffix == ".py" and LINUX_ALONE.search(collection_path.read_text("utf-8")):
        return True
    return None


def pytest_collection_modifyitems(items):
    for item in items:
        for name, lacking in (("posix", ON_WINDOWS), ("windows", UNDER_WINE)):
            if lacking and (mark := item.get_closest_marker(name)):
                item.add_marker(pytest.mark.skip(reason=f"{name} alone has {mark.args[0]}"))


@pytest.fixture(autouse=True)
def own_folders(monkeypatch, tmp_path_factory):
    """Keep the settings and the state of whoever runs the tests out of them, and what tests do out of those."""
    base = tmp_path_factory.getbasetemp()
    for kind in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(base / f"no-{kind.lower()}"))
    if ON_WINDOWS:  # these variables move nothing there; for the tests they do
        monkeypatch.setattr("platformdirs.PlatformDirs", Moved)
        monkeypatch.setenv("WIN_PD_OVERRIDE_LOCAL_APPDATA", str(base / "no-folders"))
