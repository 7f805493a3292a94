"""EXPORT: costs for other tools."""
