"""litellm, over httpx and over aiohttp below httpx: one record a call, and the program sees the same."""

from collections.abc import Iterator
from typing import Any

import pytest

from bench_of_capture import Bench, check_record
from fake_provider.plan import Reply
from sdks import various
from sdks.ways import Way

pytestmark = pytest.mark.filterwarnings("ignore")  # litellm's and its models', which nobody here can mend

WAYS = list(various.litellm_ways())


@pytest.fixture(scope="module", autouse=True)
def closed(bench: Bench) -> Iterator[None]:
    """Litellm keeps clients, the asynchronous ones in the loop they were made in."""
    import litellm as untyped  # noqa: PLC0415 - takes seconds

    litellm: Any = untyped
    yield
    bench.runner.run(litellm.close_litellm_async_clients())
    litellm.in_memory_llm_clients_cache.flush_cache()


@pytest.mark.parametrize("encoding", ["", "gzip"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_litellm(bench: Bench, way: Way, encoding: str) -> None:
    """The call is seen once, although one client of it sends through another."""
    found = bench.compare(way, Reply(encoding=encoding))
    found.check_app_is_unaffected(bounds=way.bounds)
    assert found.tapped.seen[-1] == "returned"
    (record,), (entry,) = found.records, found.tapped.journal
    check_record(record, entry)
