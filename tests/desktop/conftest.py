import os
import subprocess
import sys

import pytest

from .stage import PrivateBus, need


@pytest.fixture
def bus(tmp_path, monkeypatch):
    """A private session bus that this process, too, takes for its own."""
    need("dbus-daemon")
    private = PrivateBus(tmp_path)
    private.start()
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", private.address)
    yield private
    private.kill()


@pytest.fixture
def display(monkeypatch):
    if not sys.platform.startswith("linux"):
        pytest.skip("X11")
    need("Xvfb")
    reading, writing = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(writing), "-nolisten", "tcp", "-noreset"], pass_fds=[writing],
                              stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as told:
        monkeypatch.setenv("DISPLAY", f":{told.readline().strip()}")
    monkeypatch.delenv("XAUTHORITY", raising=False)
    yield server
    server.kill()
    server.wait()
