"""Tray icon: drawing, menu, and one backend per desktop protocol. Shell."""
