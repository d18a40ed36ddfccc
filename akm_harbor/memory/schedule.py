"""Where units run: in this process, in several, or on a Dask cluster. The results are the same."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory.threads import one_thread
from akm_harbor.memory.unit import Unit, UnitResult, run_unit

_AHEAD = 3  # units waiting for each worker: bounds memory, keeps workers busy
_RESTARTS = 3
_RETRIES = 3
_CONNECT_S = 20

type Numbered = tuple[int, Unit]


def run_here(units: Iterator[Numbered]) -> Iterator[tuple[int, UnitResult]]:
    """One after the other, in this process."""
    for number, unit in units:
        yield number, run_unit(unit)


def run_processes(units: Iterator[Numbered], jobs: int) -> Iterator[tuple[int, UnitResult]]:
    """In worker processes, in whatever order they finish; a worker that dies costs only its units' time.

    Raises:
        AkmHarborError: workers keep dying.
    """
    one_thread()
    waiting: dict[int, Unit] = {}
    for restart in range(_RESTARTS + 1):
        try:
            yield from _pool(units, jobs, waiting)
        except BrokenProcessPool as error:
            if restart == _RESTARTS:
                raise AkmHarborError(
                    f"worker processes died {_RESTARTS + 1} times",
                    hint="Is memory short? Try fewer --jobs. What was finished is kept; run the command again.",
                ) from error
        else:
            return


def _pool(units: Iterator[Numbered], jobs: int, waiting: dict[int, Unit]) -> Iterator[tuple[int, UnitResult]]:
    """Run what is waiting and then the rest; `waiting` holds what has no result yet."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin) as pool, _ended_early():
        running = {pool.submit(run_unit, unit): number for number, unit in sorted(waiting.items())}
        exhausted = False
        while running or not exhausted:
            while not exhausted and len(running) < jobs * _AHEAD:
                following = next(units, None)
                if following is None:
                    exhausted = True
                    break
                number, unit = following
                waiting[number] = unit
                running[pool.submit(run_unit, unit)] = number
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                number = running.pop(future)
                result = future.result()
                del waiting[number]
                yield number, result


def _begin() -> None:
    """In a worker: a Ctrl-C is for who asked, and without them there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _ended_early() -> Iterator[None]:
    """End the workers when the work is not wanted any more: a unit may take minutes, and can be run again."""
    try:
        yield
    except BrokenProcessPool:
        raise
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise


def run_dask(units: Iterator[Numbered], address: str) -> Iterator[tuple[int, UnitResult]]:
    """On a Dask cluster; a unit whose worker dies is run again elsewhere.

    Args:
        units: what to run; each carries its own data, so workers need no shared disk, only this package.
        address: a scheduler's address (`tcp://host:8786`), or `local:N` for N workers on this machine.

    Raises:
        UsageError: an address that cannot be meant.
        AkmHarborError: Dask is not installed, or the scheduler does not answer.
    """
    try:
        import distributed
    except ImportError as error:
        raise AkmHarborError("Dask is not installed", hint="pip install 'akm-harbor[dask]'") from error
    kind, _, rest = address.partition(":")
    if kind == "local" and not (rest.isdigit() and int(rest) > 0):
        raise UsageError(f"{address!r} is no number of local workers", hint="For example local:2.")
    try:
        if kind == "local":
            client = distributed.Client(
                n_workers=int(rest), threads_per_worker=1, dashboard_address=":0", silence_logs=50
            )
        else:
            client = distributed.Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError) as error:
        raise AkmHarborError(f"no Dask scheduler answers at {address} ({error})") from error
    with client:
        yield from _cluster(units, client)


def _cluster(units: Iterator[Numbered], client: "distributed.Client") -> Iterator[tuple[int, UnitResult]]:  # type: ignore[name-defined]  # noqa: F821
    import distributed

    ahead = max(1, sum(client.nthreads().values())) * _AHEAD
    completed = distributed.as_completed()
    numbers: dict[str, int] = {}

    def submit() -> bool:
        following = next(units, None)
        if following is None:
            return False
        number, unit = following
        future = client.submit(run_unit, unit, pure=False, retries=_RETRIES)
        numbers[future.key] = number
        completed.add(future)
        return True

    for _ in range(ahead):
        if not submit():
            break
    for future in completed:
        number = numbers.pop(future.key)
        yield number, future.result()
        future.release()
        submit()
