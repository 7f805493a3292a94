"""REPLAY: traffic through its rule cards' cache models, all calls at once.

A provider's cache is a set of prefixes with an expiry. A call *looks up* prefixes of its prompt, reads the deepest that
is alive, and *touches* some: which ones is what its kind of cache says. Whether a prefix is alive follows from the
touches before, in time order per prefix: sorted once, they are running maxima, without a loop over calls.

| module | what it is about |
|---|---|
| ``chains`` | the id of a prefix |
| ``touches`` | the rule itself: which prefixes are alive, given who touched them when |
| ``nodes`` | what can be left out before anything is sorted |
| ``automatic`` | caches of every prefix: OpenAI before GPT-5.6, Gemini, vLLM, SGLang |
| ``entries`` | caches of whole entries |
| ``explicit`` | … at breakpoints: Anthropic, Bedrock, Alibaba; OpenAI since GPT-5.6 |
| ``units`` | … that the provider chooses: DeepSeek |
| ``slot`` | the last prompt and no other: llama.cpp |
| ``pings`` | requests that are sent again to keep what they cached alive |

The sequential simulator in ``sample_traces/simulator.py`` states the same rules one call at a time; tests hold the two
together call by call.
"""

from prefixscope.analyzer.replay.chains import chain_ids
from prefixscope.analyzer.replay.outcome import TTLS_MS, Outcome, replay

__all__ = ["TTLS_MS", "Outcome", "chain_ids", "replay"]
