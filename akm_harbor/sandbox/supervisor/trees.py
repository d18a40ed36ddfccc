"""Remove a sandbox's folder, where overlayfs and agents may leave folders that nobody may enter."""

import os


def remove(folder: str) -> bool:
    """Remove a folder with all that is in it; whether it is gone."""
    import shutil  # slow to load, and most supervisors never need it

    if os.geteuid() != 0:
        _open(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return not os.path.lexists(folder)


def _open(folder: str) -> None:
    pending = [folder]
    while pending:
        here = pending.pop()
        try:
            os.chmod(here, 0o700)
            with os.scandir(here) as entries:
                pending += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue  # then it stays, and `remove` tells
