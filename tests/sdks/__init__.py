"""Programs that call models through real SDKs against the fake provider, seen exactly as their authors see it."""
