"""What was paid for is on disk before anybody hears of it."""

import errno
import multiprocessing
import time

import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.answer.calls import Reply
from akm_harbor.memory.answer.journal import DiskFullError, Journal, read_journal


def reply(key="k", status="answered", **changes):
    return Reply(key, "reader", status, "m", **{"text": "hi", "in_tok": 3, "out_tok": 1, "usd": 0.5, **changes})


def test_what_was_written_is_read_back(tmp_path):
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.sent("k", 0.9)
        journal.reply(reply(text="größer\n"))
    recorded = read_journal(path)
    assert recorded.replies["k"].text == "größer\n"
    assert recorded.replies["k"].taken_over
    assert (recorded.in_flight, recorded.sent["k"], recorded.charged, recorded.torn) == ({}, 1, 0.0, 0)
    assert [p.name for p in tmp_path.iterdir()] == ["j.jsonl"]


def test_what_was_sent_and_never_heard_of_is_in_flight_at_its_most(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.sent("a", 0.9)
        journal.sent("b", None)
        journal.sent("c", 0.2)
        journal.failed("c", "timeout", 0.2)
    recorded = read_journal(tmp_path / "j")
    assert recorded.in_flight == {"a": 0.9, "b": 0.0}
    assert recorded.charged == 0.2


def test_a_request_made_again_leaves_the_first_one_uncertain_for_ever(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.sent("a", 0.5)  # the process ends here
        journal.sent("a", 0.5)
        journal.reply(reply("a"))
        journal.sent("b", 0.25)
    recorded = read_journal(tmp_path / "j")
    assert (recorded.lost, recorded.charged, recorded.uncertain) == (1, 0.5, 2)


def test_an_answer_is_not_replaced_by_a_later_failure(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.reply(reply(status="failed", text=None))
        journal.reply(reply())
        journal.reply(reply(status="failed", text=None))
    assert read_journal(tmp_path / "j").replies["k"].answered


def test_a_torn_last_line_is_left_out_and_written_over(tmp_path):
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.reply(reply("a"))
        journal.reply(reply("b"))
    whole = path.read_bytes()
    for cut in range(1, len(whole) - whole.index(b"\n") - 1, 7):
        path.write_bytes(whole[:-cut])
        with Journal(path) as journal:
            assert set(journal.recorded.replies) == {"a"}
            assert journal.recorded.torn
            journal.reply(reply("c"))
        assert set(read_journal(path).replies) == {"a", "c"}


@pytest.mark.parametrize("line", ["nonsense", '{"version": 9, "event": "reply", "key": "k"}', '{"version": 1}', "[]"])
def test_damage_in_the_middle_stops_with_the_line(tmp_path, line):
    path = tmp_path / "j"
    path.write_text(f'{{"version": 1, "event": "sent", "key": "k", "at_most_usd": 1}}\n{line}\n')
    with pytest.raises(AkmHarborError, match="line 2 of the journal"):
        read_journal(path)


def test_a_full_disk_refuses_to_send_and_keeps_what_was_on_its_way(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "j")
    journal.sent("k", 0.1)
    real = journal._append

    def append(line):
        if (tmp_path / ".j.reserve").exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        real(line)

    monkeypatch.setattr(journal, "_append", append)
    with pytest.raises(DiskFullError, match="No space left"):
        journal.sent("l", 0.1)
    assert (tmp_path / ".j.reserve").exists()
    with pytest.raises(DiskFullError):
        journal.reply(reply())
    journal.close()
    recorded = read_journal(tmp_path / "j")
    assert recorded.replies["k"].text == "hi"
    assert "l" not in recorded.sent


def test_half_a_line_does_not_stay_when_the_disk_is_full(tmp_path):
    journal = Journal(tmp_path / "j")

    class Full:
        def __init__(self, file):
            self.file = file

        def write(self, line):
            self.file.write(line[:5])
            raise OSError(errno.ENOSPC, "No space left on device")

        def __getattr__(self, name):
            return getattr(self.file, name)

    journal._file = Full(journal._file)
    with pytest.raises(DiskFullError):
        journal.sent("k", 0.1)
    assert (tmp_path / "j").read_bytes() == b""
    journal.close()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AkmHarborError, match="cannot be written"):
        Journal(tmp_path / "file" / "j")


def _hold(path, ready):
    with Journal(path):
        ready.set()
        time.sleep(0.5)


def test_the_next_one_waits_for_the_one_before(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "j", ready))
    other.start()
    assert ready.wait(60)
    began = time.monotonic()
    Journal(tmp_path / "j").close()
    assert time.monotonic() - began > 0.2
    other.join()
