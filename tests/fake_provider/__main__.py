"""Serves until its standard input ends: ``python -m fake_provider`` prints the port it listens on."""

import asyncio
import logging
import socket
import sys

from hypercorn.asyncio import serve
from hypercorn.config import Config

from fake_provider.app import App


async def _main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.accesslog = config.errorlog = None
    config.keep_alive_timeout = 60.0
    config.graceful_timeout = 0.2
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # clients go away in the middle of answers: no news
    print(listener.getsockname()[1], flush=True)
    await serve(App(), config, shutdown_trigger=lambda: asyncio.to_thread(sys.stdin.read))  # type: ignore[arg-type]


asyncio.run(_main())
