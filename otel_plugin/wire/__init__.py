"""Request bodies of the provider APIs, one module a shape: a JSON object in, segments in render order out."""
