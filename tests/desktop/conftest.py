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
