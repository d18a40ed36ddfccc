"""Files of a benchmark's shape and size, made up: for timing, memory and damage tests."""

import json
import random
from pathlib import Path

_SYLLABLES = ("ba", "lo", "mi", "ren", "tu", "sko", "vel", "da", "pin", "gra", "he", "os", "fi", "lum", "car", "te")
_TYPES = (
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
)


def longmemeval(path: Path, *, questions: int, sessions: int, turns: int, chars: int, seed: int = 0) -> Path:
    """Write a LongMemEval-shaped file; its size is about questions x sessions x turns x chars.

    S has 500 x 48 sessions of about 11 turns (277 MB), M 500 x 500 (2.75 GB).
    """
    rng = random.Random(seed)
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(4000)]
    texts = []
    for _ in range(3000):
        length, size, picked = rng.randint(chars // 2, chars * 3 // 2), 0, []
        while size < length:
            picked.append(rng.choice(words))
            size += len(picked[-1]) + 1
        texts.append(" ".join(picked))
    with path.open("w") as out:
        out.write("[")
        for number in range(questions):
            out.write(", " if number else "")
            json.dump(_question(number, sessions, turns, texts, rng), out)
        out.write("]")
    return path


def _question(number: int, sessions: int, turns: int, texts: list[str], rng: random.Random) -> dict[str, object]:
    gold = rng.randrange(sessions)
    ids = [f"answer_{number:04x}_1" if s == gold else f"filler_{rng.randrange(10**6)}_{s}" for s in range(sessions)]
    haystack = [
        [
            {
                "role": "user" if t % 2 == 0 else "assistant",
                "content": rng.choice(texts),
                **({"has_answer": t == 0} if s == gold else {}),
            }
            for t in range(turns)
        ]
        for s in range(sessions)
    ]
    return {
        "question_id": f"q{number:05d}" + ("_abs" if number % 17 == 16 else ""),
        "question_type": _TYPES[number % len(_TYPES)],
        "question": " ".join(rng.choice(texts).split()[:9]) + "?",
        "answer": number if number % 11 == 0 else rng.choice(texts)[:40],
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": [f"2023/05/{1 + s % 28:02d} (Mon) {s % 24:02d}:15" for s in range(sessions)],
        "haystack_session_ids": ids,
        "haystack_sessions": haystack,
        "answer_session_ids": [ids[gold]],
    }
