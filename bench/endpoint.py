"""A target in a process of its own, so that its CPU is nobody else's: it answers when ten requests are there.

20 ms after that, all ten with 200. Run as `python -m bench.endpoint [CERTIFICATE]`: it writes its port, then
serves until its input ends.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AT_ONCE, ANSWERS_AFTER_S = 10, 0.02
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


@contextmanager
def answering(certificate: Path | None = None) -> Iterator[int]:
    """Yields the port. certificate: PEM of key and certificate, for TLS."""
    command = [sys.executable, "-m", "bench.endpoint", *([str(certificate)] if certificate else [])]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.communicate()


class _Endpoint:
    def __init__(self) -> None:
        self._waiting = 0
        self._all_there = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        await reader.readexactly(length)
        await self._ten()
        await asyncio.sleep(ANSWERS_AFTER_S)
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    async def _ten(self) -> None:
        self._waiting += 1
        mine = self._all_there
        if self._waiting == AT_ONCE:
            mine.set()
            self._waiting, self._all_there = 0, asyncio.Event()
        await mine.wait()


async def _main(certificate: str | None) -> None:
    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    server = await asyncio.start_server(_Endpoint().serve, "127.0.0.1", 0, ssl=tls)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1] if len(sys.argv) > 1 else None))
