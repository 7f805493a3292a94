"""The cache of one account in one scope: the reference simulator, fed one request at a time."""

from dataclasses import dataclass, field, replace

import simulator
from fake_provider.prompts import Request
from simulator import Outcome, Rules, SimCall

START_MS = 1_793_610_000_000  # 2026-11-02T09:00:00Z
STEP_MS = 1_000  # between two requests whose plan names no time
TTFT_MS = 400

_DAY_MS = 86_400_000
_RULES = {  # the providers' pages, autumn 2026: gpt-4o to 5.4, Claude Sonnet 4.5, Gemini 2.5
    "openai": Rules("automatic", min_tokens=1024, granularity=128, ttl_ms=_DAY_MS),
    "google": Rules("automatic", min_tokens=2048, ttl_ms=_DAY_MS),
    "anthropic": Rules("explicit", min_tokens=1024, lookback=20),
}


@dataclass(slots=True)
class Cache:
    """Prefixes of one account. ``serve`` must be called in the order of the requests' times."""

    entries: simulator._Entries = field(default_factory=dict)
    now_ms: int = START_MS - STEP_MS

    def serve(self, request: Request, at_ms: int = 0) -> Outcome:
        """What ``request`` reads, writes and pays in full at ``at_ms`` (0: a step after the request before)."""
        self.now_ms = at_ms or self.now_ms + STEP_MS
        prompt, limits = simulator._Prompt(sim_call(request, self.now_ms), self.entries), rules(request)
        return simulator._SERVE[limits.cache](prompt, limits)

    def warm(self, request: Request) -> None:
        """As if ``request`` had been served before, without its last block. Does nothing once the cache was used."""
        if not self.entries:
            self.serve(replace(request, blocks=request.blocks[:-1]))


def rules(request: Request) -> Rules:
    return _RULES[request.vendor]


def sim_call(request: Request, at_ms: int) -> SimCall:
    parts = request.parts
    markers = request.markers(parts) if request.is_marked else ()
    return SimCall(at_ms, at_ms + TTFT_MS, (request.api, request.model), parts, markers)
