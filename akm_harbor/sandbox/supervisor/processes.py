"""Whom a command runs as, and how it is killed with all that came of it."""

import os
import signal
import time

_KILL_SECONDS = 5.0
_KILL_PAUSE = 0.001


class Account:
    """Whom a command runs as."""

    __slots__ = ("gid", "groups", "home", "name", "uid")

    def __init__(self, uid: int, gid: int, groups: tuple[int, ...], home: str, name: str) -> None:
        self.uid, self.gid, self.groups, self.home, self.name = uid, gid, groups, home, name


def account(user: str) -> Account:
    """Look a user up in the passwd and group files of the current root; see `find_account`."""
    return find_account(user, _text("/etc/passwd"), _text("/etc/group"))


def find_account(user: str, passwd: str, group: str) -> Account:
    """Look a user up.

    Args:
        user: `name`, `uid`, `name:group` or `uid:gid`, as in Docker.
        passwd: text of a passwd file.
        group: text of a group file.

    Raises:
        LookupError: there is no such user or group.
    """
    name, _, group_name = user.partition(":")
    entry = _find(_rows(passwd, 7), name)
    if entry:
        uid, gid, home, name = int(entry[2]), int(entry[3]), entry[5], entry[0]
    elif name.isdigit():
        uid, gid, home, name = int(name), 0, "/", ""
    else:
        raise LookupError(f"no user {name!r} in the sandbox's /etc/passwd")
    groups = _rows(group, 4)
    if group_name:
        found = _find(groups, group_name)
        if not found and not group_name.isdigit():
            raise LookupError(f"no group {group_name!r} in the sandbox's /etc/group")
        return Account(uid, int(found[2] if found else group_name), (), home, name)
    more = (int(row[2]) for row in groups if name and name in row[3].split(","))
    return Account(uid, gid, tuple(dict.fromkeys((gid, *more))), home, name)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def _rows(text: str, columns: int) -> list[list[str]]:
    rows = [line.split(":") for line in text.splitlines() if not line.startswith("#")]
    return [row for row in rows if len(row) >= columns and row[2].isdigit()]


def _find(rows: list[list[str]], key: str) -> list[str] | None:
    named = next((row for row in rows if row[0] == key), None)
    return named or next((row for row in rows if row[2] == key), None)


def become(user: Account) -> None:
    """Give up root for this account (no change when it is root already).

    Raises:
        PermissionError: without real root the kernel maps only one user into the sandbox.
    """
    if (os.getuid(), os.getgid()) == (user.uid, user.gid) == (0, 0):
        try:
            os.setgroups(user.groups or (user.gid,))
        except PermissionError:
            pass  # a user namespace of one user forbids it
        return
    try:
        os.setgroups(user.groups or (user.gid,))
        os.setgid(user.gid)
        os.setuid(user.uid)
    except OSError as error:
        raise PermissionError(
            f"cannot run as {user.name or user.uid}: without root the sandbox has only one user ({error})"
        ) from error


def kill_tree(root: int) -> None:
    """Kill all descendants of `root` and all members of their sessions.

    Each is stopped first, so that none can have another child between being seen and
    being killed. `root` is the child of ours that waits for the command and ends with it;
    as long as it lives there is something left to kill, if only a command that is just
    being started.
    """
    deadline = time.monotonic() + _KILL_SECONDS
    sessions: set[int] = set()
    while time.monotonic() < deadline:
        stopped: set[int] = set()
        while new := _tree(table := _process_table(), root, sessions) - stopped:
            _signal(new, signal.SIGSTOP)
            stopped |= new
        _signal(stopped, signal.SIGKILL)
        if root not in table and not stopped:
            return
        time.sleep(_KILL_PAUSE)


def _signal(pids: set[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # gone already, or about to change its user: seen again in the next round


def _tree(table: dict[int, tuple[int, int]], root: int, sessions: set[int]) -> set[int]:
    """Living descendants of `root` and members of their sessions, which are added to `sessions`."""
    ours = table[root][1] if root in table else None  # a child that has not called setsid yet is still in it
    doomed: set[int] = set()
    while True:
        more = {
            pid
            for pid, (parent, session) in table.items()
            if pid not in doomed and (parent == root or parent in doomed or session in sessions)
        }
        if not more:
            return doomed
        doomed |= more
        sessions |= {table[pid][1] for pid in more} - {ours}


def _process_table() -> dict[int, tuple[int, int]]:
    """Living processes: pid -> (parent, session)."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _text(f"/proc/{name}/stat").rpartition(")")[2].split()) and stat[0] not in "ZX":
            table[int(name)] = (int(stat[1]), int(stat[3]))
    return table
