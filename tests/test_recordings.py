"""Recordings of the real programs, with the truth: how well island agrees, file by file, as a ratchet.

The recordings lie outside the project (ISLAND_RECORDINGS, else `../shared/recordings`). `ratchet/AGENT.json` holds
the figures that were reached: worse fails, and so does better that is not written down. Each figure that is not
perfect says why no observer could do better, or what the truth line misses. `--rewrite` writes the figures, never
a reason.
"""

import json
import os
from pathlib import Path

import pytest

from island.agents import AGENTS
from island.hooks.rows import HOOKS
from island.replay import play
from island.sequence import parse, score

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("ISLAND_RECORDINGS", HERE.parents[1] / "shared" / "recordings"))
RATCHET = HERE / "ratchet"
FILES = sorted(f for agent in AGENTS for f in (FOLDER / agent).glob("*.jsonl"))
#: Percent that hooks may cost in one recording: a child may be told to have ended some milliseconds earlier.
WITHIN = 0.4
PERFECT = {"agree": 100.0, "false": 0, "missed": 0}

pytestmark = pytest.mark.recordings


def reached(file: Path, *, hooks: bool = False) -> dict[str, float]:
    sequence = parse(file.read_text(), str(file))
    figures = score(sequence, play(sequence, hooks=hooks))
    return {"agree": round(100 * figures.agree, 2), "false": figures.false, "missed": figures.missed}


def ratchet(agent: str) -> dict[str, dict[str, object]]:
    """Return the figures of an agent's recordings that are not perfect; none if it has none, or no recordings yet."""
    file = RATCHET / f"{agent}.json"
    return json.loads(file.read_text()) if file.exists() else {}


@pytest.mark.skipif(not FILES, reason=f"no recordings in {FOLDER}")
@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_agrees_with_the_truth_as_well_as_it_ever_did(file: Path, request: pytest.FixtureRequest):
    agent = file.parent.name
    figures, held = reached(file), ratchet(agent).get(file.name, PERFECT)
    if request.config.getoption("--rewrite"):
        entries = {**ratchet(agent), file.name: {**held, **figures}}
        kept = {k: v for k, v in sorted(entries.items()) if v != PERFECT}
        (RATCHET / f"{agent}.json").write_text(json.dumps(kept, indent=1) + "\n")
        return
    assert figures == pytest.approx({k: held[k] for k in PERFECT}, abs=0.011), held.get("why", "was perfect")


HOOKED = [f for f in FILES if f.parent.name in HOOKS]


@pytest.mark.skipif(not HOOKED, reason=f"no recordings in {FOLDER}")
@pytest.mark.parametrize("file", HOOKED, ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_hooks_make_nothing_worse(file: Path):
    figures, held = reached(file, hooks=True), ratchet(file.parent.name).get(file.name, PERFECT)
    assert figures["agree"] >= held["agree"] - WITHIN
    assert figures["false"] <= held["false"]
    assert figures["missed"] <= held["missed"]


@pytest.mark.parametrize("agent", AGENTS)
def test_each_imperfect_figure_is_explained(agent: str):
    assert [name for name, held in ratchet(agent).items() if len(held.get("why", "")) < 40] == []


#: Over all recordings of an agent, what it must reach at least, in percent of the judged time.
LEAST = {"claude": 97.0, "codex": 97.0, "warp": 60.0}  # the end of each of Warp's turns counts ten seconds late


@pytest.mark.skipif(not FILES, reason=f"no recordings in {FOLDER}")
@pytest.mark.parametrize("agent", AGENTS)
def test_agrees_over_all_recordings_of_an_agent_as_the_readme_says(agent: str):
    files = [f for f in FILES if f.parent.name == agent]
    if not files:
        pytest.skip(f"no recordings of {agent} yet")
    sequences = [parse(f.read_text(), str(f)) for f in files]
    figures = [score(s, play(s)) for s in sequences]
    judged = sum(f.judged for f in figures)
    agreed = 100 * sum(f.good for f in figures) / judged
    assert agreed >= LEAST.get(agent, 95.0)
    told = (len(files), f"{judged / 60:.0f} min", f"{agreed:.1f} %", *(sum(getattr(f, n) for f in figures)
                                                                       for n in ("false", "missed")))
    row = f"| {AGENTS[agent].label} | {' | '.join(map(str, told))} |"
    assert row in (HERE.parent / "README.md").read_text().splitlines(), row
