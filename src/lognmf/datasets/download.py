"""Downloads that resume: a broken transfer continues where it stopped, and only a checked file gets its name.

pooch holds the temporary file, checks the hash and moves the file into place. Proxies are
those of the environment.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pooch
import requests

from lognmf.datasets.places import check_hash
from lognmf.datasets.registry import File

_CHUNK = 1 << 13
"""Bytes written at once: a broken transfer loses at most this many."""

_TIMEOUT = (10, 60)
"""Seconds to wait for a connection, and for the next piece of a file."""

_ATTEMPTS = 3
_GOT_RANGE, _NO_SUCH_RANGE = 206, 416


def download(file: File, home: Path) -> Path:
    """Download ``file``, which has a url, to its path below ``home``."""
    target = home / file.path
    name = target.name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # pooch downloads nothing if the file is there with the right hash.
        options = {"fname": name, "path": target.parent, "downloader": partial(_resume, file)}
        return Path(pooch.retrieve(file.url, f"sha256:{file.sha256}", **options))
    except requests.HTTPError as error:
        answer = "an error" if (got := error.response) is None else f"{got.status_code} {got.reason}".strip()
        msg = (
            f"{name} could not be downloaded: {file.url} answered {answer}. Try again later, or put "
            f"the file at {target} yourself."
        )
        raise ConnectionError(msg) from error
    except requests.RequestException as error:
        msg = (
            f"{name} could not be downloaded from {file.url} ({_reason(error)}). Check your connection "
            "(a proxy is taken from https_proxy) and try again: the download continues where it stopped. "
            f"Or put the file at {target} yourself."
        )
        raise ConnectionError(msg) from error


def _resume(file: File, url: str, output_file: str, _: object) -> None:
    """Download as pooch asks for it, and keep what has arrived next to the target, in NAME.part."""
    part = Path(output_file).with_name(f"{Path(file.path).name}.part")
    with _claimed(part) as own, requests.Session() as session:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                _receive(session, url, own)
                break
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
                if attempt == _ATTEMPTS:
                    raise
        try:
            check_hash(own, file, remedy="It is thrown away, try again", what=f"What {url} sent")
        except ValueError:
            own.unlink()
            raise
        own.replace(output_file)


@contextmanager
def _claimed(part: Path) -> Iterator[Path]:
    """The part of a broken download, under a name of our own; renamed back if this attempt breaks too."""
    own = part.with_name(f"{part.name}-{uuid.uuid4().hex}")
    try:
        part.rename(own)
    except FileNotFoundError:
        own.touch()
    try:
        yield own
    finally:
        if own.exists() and own.stat().st_size:
            own.replace(part)
        own.unlink(missing_ok=True)


def _receive(session: requests.Session, url: str, path: Path) -> None:
    """Append the missing part of ``url`` to ``path``."""
    start = path.stat().st_size
    # Without "identity" a server may compress, and ranges would count compressed bytes.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    with session.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
        if answer.status_code == _NO_SUCH_RANGE and start:
            # We have as much as the file or more: the hash check decides whether it is complete.
            return
        answer.raise_for_status()
        resumes = answer.status_code == _GOT_RANGE
        if resumes and not answer.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            path.write_bytes(b"")
            msg = "the server sent another part of the file than the one asked for"
            raise requests.ConnectionError(msg)
        with path.open("ab" if resumes else "wb") as file:
            file.writelines(answer.iter_content(_CHUNK))
            file.flush()
            os.fsync(file.fileno())
        _check_length(answer, path.stat().st_size - (start if resumes else 0))


def _check_length(answer: requests.Response, received: int) -> None:
    expected = answer.headers.get("Content-Length")
    if expected is not None and expected.isdigit() and received < int(expected):
        msg = f"the connection broke after {received} of {expected} bytes"
        raise requests.ConnectionError(msg)


def _reason(error: Exception) -> str:
    """The innermost cause, in one line."""
    while isinstance(error.args[:1], tuple) and error.args and isinstance(error.args[0], Exception):
        error = error.args[0]
    return " ".join(str(getattr(error, "reason", None) or error).split()).rstrip(".") or type(error).__name__
