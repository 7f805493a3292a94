"""COLLECT: an OTLP receiver beside a running store."""
