"""Lint and types: for the platforms that are not this one, too."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_lint():
    run("ruff", "check", "island", "tests")


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_types(platform):
    # What only another platform reaches is no dead code.
    elsewhere = [] if sys.platform.startswith(platform) else ["--no-warn-unreachable"]
    run("mypy", "--platform", platform, "--cache-dir", f".mypy_cache/{platform}", *elsewhere)
