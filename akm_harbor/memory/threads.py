"""How many threads the numeric libraries take; imported before any of them."""

import os


def one_thread() -> None:
    """One thread in the numeric libraries, unless the user says otherwise; works only before they are imported.

    Workers share the cores, threads that wait for each other on a busy machine are many times slower than
    one, and the last digits of a product do not depend on how many there are.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ.setdefault(name, "1")
