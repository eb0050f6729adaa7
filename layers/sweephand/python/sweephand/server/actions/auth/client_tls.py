"""Client certificates for the standard library's TLS, which loads keys only from files."""

from __future__ import annotations

import hashlib
import os
import ssl
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from sweephand.domain.run import Reason
from sweephand.server.security.guard import CallFailed, Outbound
from sweephand.server.security.outbound import new_ssl_context

KEPT = 32
_contexts: OrderedDict[tuple[bytes, str | None], ssl.SSLContext] = OrderedDict()
_lock = Lock()


def context(pem: str, outbound: Outbound) -> ssl.SSLContext:
    """Returns a context with this certificate, made once because each takes 16 ms of CPU. Raises CallFailed(TLS)."""
    key = hashlib.sha256(pem.encode()).digest(), outbound.authorities
    with _lock:
        if key in _contexts:
            _contexts.move_to_end(key)
            return _contexts[key]
    made = new_ssl_context(outbound.authorities)
    with _file(pem.encode()) as path:
        try:
            made.load_cert_chain(path)
        except ssl.SSLError as wrong:
            raise CallFailed(Reason.TLS, "the client certificate cannot be used") from wrong
    with _lock:
        _contexts[key] = made
        while len(_contexts) > KEPT:
            _contexts.popitem(last=False)
    return made


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """Yields a path to be read once: of a file in memory if the system has such files, else of one deleted at once."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("certificate", os.MFD_CLOEXEC)
        path, gone = f"/proc/self/fd/{handle}", None
    else:
        handle, path = tempfile.mkstemp()
        gone = Path(path)
    try:
        with os.fdopen(handle, "wb", closefd=True) as file:
            file.write(content)
            file.flush()
            yield path
    finally:
        if gone is not None:
            gone.unlink()
