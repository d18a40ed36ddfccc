"""Fetching a pinned file, from a server on loopback: whole and checked, or not at all."""

import dataclasses
import hashlib
import http.server
import threading

import pytest

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory.datasets import sources
from akm_harbor.memory.datasets.reading import DatasetError, WrongDigestError

BODY = b'[{"question_id": "q"}]' * 1000


class FileServerDouble(http.server.BaseHTTPRequestHandler):
    """Stands in for a publisher's server; serves BODY whole, half, or an error."""

    requests = 0

    def do_GET(self):
        type(self).requests += 1
        if self.path == "/gone":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY if self.path == "/whole" else BODY[: len(BODY) // 2])

    def log_message(self, *_args):
        pass


@pytest.fixture
def server():
    FileServerDouble.requests = 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), FileServerDouble) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


SHA = hashlib.sha256(BODY).hexdigest()


def source(url, sha256=SHA):
    return dataclasses.replace(sources.find_source("locomo"), url=url, sha256=sha256, file="f.json", size=len(BODY))


def test_a_file_is_fetched_once(server, tmp_path):
    seen = []
    one = source(f"{server}/whole")
    path = sources.fetch(one, tmp_path, lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == BODY
    assert seen[-1] == (len(BODY), len(BODY))
    assert sources.fetch(one, tmp_path) == path
    assert FileServerDouble.requests == 1


def test_a_changed_file_is_fetched_again(server, tmp_path):
    one = source(f"{server}/whole")
    path = sources.fetch(one, tmp_path)
    path.write_bytes(b"damaged")
    assert sources.fetch(one, tmp_path).read_bytes() == BODY


@pytest.mark.parametrize(
    ("route", "sha256", "failure"),
    [
        ("/half", None, (DatasetError, "broke off after")),
        ("/gone", None, (DatasetError, "could not be fetched")),
        ("/whole", "0" * 64, (WrongDigestError, "is not the published locomo")),
    ],
)
def test_nothing_is_left_of_a_failed_fetch(server, tmp_path, route, sha256, failure):
    error, said = failure
    with pytest.raises(error, match=said):
        sources.fetch(source(server + route, sha256), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_network_says_what_to_do_instead(tmp_path):
    with pytest.raises(DatasetError, match="name it with --data"):
        sources.fetch(source("http://127.0.0.1:1/x"), tmp_path)


def test_what_cannot_be_fetched_says_so(tmp_path):
    with pytest.raises(AkmHarborError, match="cannot be fetched by itself"):
        sources.fetch(sources.find_source("beam-100k"), tmp_path)
    with pytest.raises(UsageError, match="no dataset is named 'locomo11'"):
        sources.find_source("locomo11")


def test_every_published_source_is_pinned():
    for one in sources.sources().values():
        assert one.licence
        if one.url:
            assert one.revision in one.url
            assert one.file
            assert one.url.startswith("https://")
