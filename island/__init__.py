"""island: one tray icon that says whether any of your coding agents needs you now."""

__version__ = "0.1.0"
