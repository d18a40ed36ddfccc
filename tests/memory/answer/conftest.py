"""The double on loopback, and the calling process's work done in threads of this one."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from akm_harbor.memory.answer import book as book_module
from akm_harbor.memory.answer import caller as caller_module
from akm_harbor.memory.answer import endpoint
from akm_harbor.memory.answer.caller import Caller
from akm_harbor.memory.answer.journal import Journal
from akm_harbor.memory.answer.limits import Cap
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.sources import find_source
from akm_harbor.memory.datasets.store import Store
from tests.memory.answer.model_double import Double, Script
from tests.memory.answer.support import script_for

HERE = Path(__file__).parent


class InProcessKeeper:
    """Stands in for `Keeper`: the same caller and journal, without a process. The real one is in test_keeper."""

    def __init__(self, journal, terms):
        self._journal = Journal(journal)
        cap = Cap(terms.max_usd, terms.max_calls)
        self._caller = Caller(terms.reader, terms.judge, cap, self._journal)
        self._pool = ThreadPoolExecutor(terms.concurrency)
        self.spent = {"usd": 0.0, "requests": 0}

    @property
    def stopped_by(self):
        return self._caller.stopped_by

    def ask(self, requests):
        for reply in self._pool.map(self._caller.call, requests):
            self.spent = self._caller.spent()
            yield reply

    def close(self):
        self._pool.shutdown()
        self._journal.close()


def pytest_collection_modifyitems(items):
    """litellm and what it loads on its first calls warn; ours must not."""
    theirs = pytest.mark.filterwarnings(r"ignore::Warning:(litellm|pydantic|openai|httpx|aiohttp)\b.*")
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(theirs)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("DOUBLE_KEY", "not-a-real-key")


@pytest.fixture(autouse=True, scope="session")
def warm():
    """Import litellm once, outside of any test's clock."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        endpoint.warm_up()


@pytest.fixture
def here(monkeypatch):
    """Calls are made in this process, through litellm and a socket."""
    monkeypatch.setattr(book_module, "Keeper", InProcessKeeper)


@pytest.fixture
def direct(here, monkeypatch):
    """Calls reach the double without litellm and without a socket, which is much faster."""

    def complete(model, messages, settings, *, api_base, api_key, timeout_s):
        return Double.running[api_base.rstrip("/")].direct(model, messages, settings)

    monkeypatch.setattr(caller_module, "complete", complete)


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    names = ("locomo", "longmemeval", "beam", "convomem")
    sources = {name: find_source(f"demo-{name}") for name in names}
    return {name: Store(convert(s.path, root / name, source=s).path) for name, s in sources.items()}


@pytest.fixture
def double():
    """A double without a script: it abstains."""
    with Double(Script()) as running:
        yield running


@pytest.fixture
def scripted(stores):
    """Makes a running double for a dataset."""
    open_ones = []

    def make(name="locomo", **options):
        running = Double(script_for(stores[name], **options))
        open_ones.append(running)
        return running.__enter__()

    yield make
    for one in open_ones:
        one.__exit__(None, None, None)
