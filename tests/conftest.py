"""Profiles of the property tests: few examples at the desk, many and always the same ones in CI."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), max_examples=500, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser):
    parser.addoption("--rewrite", action="store_true", help="write what island says now into sequences' expect lines")


@pytest.fixture(autouse=True)
def own_folders(monkeypatch, tmp_path_factory):
    """Keep the settings and the state of whoever runs the tests out of them, and what tests do out of those."""
    for kind in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path_factory.getbasetemp() / f"no-{kind.lower()}"))
