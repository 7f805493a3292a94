"""CAPTURE: from wire JSON to call records. Light: the standard library and OpenTelemetry, nothing else."""
