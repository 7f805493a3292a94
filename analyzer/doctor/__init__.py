"""DOCTOR: whether capture works on this machine."""
