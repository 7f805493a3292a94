"""DECIDE and VERIFY: what becomes of a finding, and what a fix has saved."""
