"""Bytes and hints in: files, watch, processes. Shell: decides nothing."""
