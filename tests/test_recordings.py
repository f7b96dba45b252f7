"""Recordings of the real programs, with the truth: how well island agrees, file by file, as a ratchet.

The recordings lie outside the project (ISLAND_RECORDINGS, else `../shared/recordings`). `ratchet.json` holds the
figures that were reached: worse fails, and so does better that is not written down. Each figure that is not
perfect says why no observer could do better, or what the truth line misses. `--rewrite` writes the figures, never
a reason.
"""

import json
import os
from pathlib import Path

import pytest

from island.agents import AGENTS
from island.replay import play
from island.sequence import parse, score

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("ISLAND_RECORDINGS", HERE.parents[1] / "shared" / "recordings"))
RATCHET = HERE / "ratchet.json"
FILES = sorted(f for agent in AGENTS for f in (FOLDER / agent).glob("*.jsonl"))
PERFECT = {"agree": 100.0, "false": 0, "missed": 0}

pytestmark = pytest.mark.recordings


def reached(file: Path) -> dict[str, float]:
    sequence = parse(file.read_text(), str(file))
    figures = score(sequence, play(sequence))
    return {"agree": round(100 * figures.agree, 2), "false": figures.false, "missed": figures.missed}


@pytest.mark.skipif(not FILES, reason=f"no recordings in {FOLDER}")
@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_agrees_with_the_truth_as_well_as_it_ever_did(file: Path, request: pytest.FixtureRequest):
    ratchet = json.loads(RATCHET.read_text())
    name = f"{file.parent.name}/{file.name}"
    figures, held = reached(file), ratchet.get(name, PERFECT)
    if request.config.getoption("--rewrite"):
        ratchet[name] = {**held, **figures}
        ratchet = {k: v for k, v in sorted(ratchet.items()) if v != PERFECT}
        RATCHET.write_text(json.dumps(ratchet, indent=1) + "\n")
        return
    assert figures == pytest.approx({k: held[k] for k in PERFECT}, abs=0.011), held.get("why", "was perfect")


def test_each_imperfect_figure_is_explained():
    ratchet = json.loads(RATCHET.read_text())
    assert [name for name, held in ratchet.items() if len(held.get("why", "")) < 40] == []


@pytest.mark.skipif(not FILES, reason=f"no recordings in {FOLDER}")
@pytest.mark.parametrize(("agent", "least"), [("claude", 97.0), ("codex", 97.0)])
def test_agrees_over_all_recordings_of_an_agent(agent: str, least: float):
    files = [f for f in FILES if f.parent.name == agent]
    sequences = [parse(f.read_text(), str(f)) for f in files]
    figures = [score(s, play(s)) for s in sequences]
    assert 100 * sum(f.good for f in figures) / sum(f.judged for f in figures) >= least
