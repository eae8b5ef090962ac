"""A file server of one's own, and places that are this test's alone: no test reaches the network."""

import hashlib
import http.server
import threading

import pytest

from lognmf.datasets.registry import REGISTRY, Entry, File

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """No data folder, an empty cache, no proxy."""
    monkeypatch.delenv("LOGNMF_DATA", raising=False)
    monkeypatch.setenv("LOGNMF_CACHE", str(tmp_path / "cache"))
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def here():
    """The cache of this test."""
    from lognmf.datasets.places import cache

    return cache()


class Server(http.server.ThreadingHTTPServer):
    """Serves ``content`` for every path; can be told to misbehave.

    ``breaks``: after how many bytes each of the next answers breaks off. ``ranges``: whether
    parts are served. ``status``: an error to answer with. ``asked``: (path, Range) of all requests.
    """

    def __init__(self, content):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content, self.breaks, self.ranges, self.status, self.asked = content, [], True, 200, []
        self.wrong_range = False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.asked.append((self.path, wanted))
        if server.status != 200:
            self.send_error(server.status)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.ranges else 0
        if start >= len(server.content) and start:
            self.send_error(416)
            return
        body = server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            told = 0 if server.wrong_range else start
            self.send_header("Content-Range", f"bytes {told}-{len(server.content) - 1}/{len(server.content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: server.breaks.pop(0)] if server.breaks else body)
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = Server(bytes(range(256)) * 1000)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def toy(server):
    """The file that the server has."""
    return File("toy/toy.mat", hashlib.sha256(server.content).hexdigest(), f"{server.url}/toy.mat")


@pytest.fixture
def register(monkeypatch):
    """Put a data set into the registry for the time of the test."""

    def register(*files, **more):
        fields = {
            "name": "toy", "title": "A toy", "samples": 4, "features": 6, "classes": 2, "layout": "matlab",
            "class_name": "thing {}", "first_class": 1, "source": "us", "licence": "free", "citation": "none",
            "files": files,
        }  # fmt: skip
        entry = Entry(**{**fields, **more})
        monkeypatch.setitem(REGISTRY, entry.name, entry)
        return entry

    return register


@pytest.fixture
def make_pictures():
    """Grey pictures of random pixels: so many in each sub-folder."""
    import numpy as np
    from PIL import Image

    def make_pictures(folder, classes, shape=(4, 5), ending="png"):
        made = {}
        rng = np.random.default_rng(1)
        for name, count in classes.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            for i in range(count):
                grey = rng.integers(256, size=shape, dtype=np.uint8)
                made[name, i] = grey
                Image.fromarray(grey).save(folder / name / f"{i}.{ending}")
        return made

    return make_pictures
