"""The test bench: one fake provider, one set of clients and one event loop for all tests of capture."""

import asyncio
import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network for prices when it is imported


@pytest.fixture(scope="session")
def provider() -> Iterator[Any]:
    """A running ``FakeProvider``."""
    from fake_provider import server  # noqa: PLC0415 - most tests in this folder need no SDK and no server

    with server.running() as found:
        yield found


@pytest.fixture(scope="session")
def bench(provider: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The ``Bench`` where programs run, once as they are and once captured."""
    from bench_of_capture import Bench  # noqa: PLC0415 - as above
    from recording import Recorder  # noqa: PLC0415
    from sdks.clients import Clients  # noqa: PLC0415

    clients = Clients(provider.url)
    gc.collect()
    gc.freeze()  # what the SDKs have loaded stays: collecting garbage is quick then
    with asyncio.Runner() as runner:
        bench = Bench(provider, clients, Recorder(tmp_path_factory.mktemp("spool")), runner)
        yield bench
        runner.run(clients.close())
        bench.recorder.capture.close()
