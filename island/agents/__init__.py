"""The table of agents: one row per agent, one file per row. Pure.

To add one: write its file, add its row here, add a folder of sequences. Nothing else changes.
"""

from __future__ import annotations

from island.agents.aider import AIDER
from island.agents.base import Agent
from island.agents.claude import CLAUDE
from island.agents.codex import CODEX
from island.agents.copilot import COPILOT
from island.agents.cursor import CURSOR
from island.agents.droid import DROID
from island.agents.gemini import GEMINI
from island.agents.kimi import KIMI
from island.agents.opencode import OPENCODE
from island.agents.pi import PI
from island.agents.qwen import QWEN
from island.agents.warp import WARP

AGENTS: dict[str, Agent] = {
    agent.name: agent for agent in (AIDER, CLAUDE, CODEX, COPILOT, CURSOR, DROID, GEMINI, KIMI, OPENCODE, PI, QWEN,
                                     WARP)
}
