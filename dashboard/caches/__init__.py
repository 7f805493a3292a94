"""The page on response caches: what was given, what is told of it, and pairs that people judge."""
