"""SHOW, on a terminal and in files: every format reads the same report data and computes nothing of its own."""
