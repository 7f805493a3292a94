"""PRICE: what a token costs, exact, at the call's own time."""
