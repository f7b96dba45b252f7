"""Hooks: what agents can be asked to tell at once, by a small command of island's that they run."""
