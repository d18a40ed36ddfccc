"""Made-up rows of memory_trials, as `memory run` writes them."""

import itertools

import numpy as np
import pandas as pd

from akm_harbor.memory.columns import TRIALS


def protocol(**changes):
    """A study's protocol at one budget."""
    fields = {
        "id": "abc", "benchmark": "locomo", "dataset_sha256": "0" * 64, "granularity": "turn", "topk": 5,
        "depth": None, "budget": None, "sample": "all", "reader_model": "stub", "reader_prompt_sha256": "f" * 64,
        "scorer": "locomo-f1", "judge_model": None,
    }  # fmt: skip
    return {**fields, **changes}


def manifest(**changes):
    """A study's manifest."""
    value = {
        "kind": "memory-study", "name": "study", "run_id": "r1", "package": "0", "complete": True, "judge_probe": None,
        "protocols": {"as-is": protocol()}, "dataset": {"audit_source": None},
    }  # fmt: skip
    return {**value, **changes}


def trials(arms, *, histories=10, questions=8, repeats=1, judge_repeats=1, budget=None, seed=1, types=("a", "b")):
    """Rows of several arms; `arms` maps an arm to its chance of being right."""
    rows = []
    for arm, chance in arms.items():
        dice = np.random.default_rng([seed, len(arm), *arm.encode()])
        for h, q, repeat in itertools.product(range(histories), range(questions), range(repeats)):
            row = {
                "run_id": "r1", "benchmark": "locomo", "dataset_sha256": "0" * 64, "instance_id": f"h{h}",
                "question_id": f"h{h}/q{q}", "qtype_raw": "4", "qtype": types[q % len(types)], "arm": arm,
                "backend": arm, "protocol_id": "abc", "granularity": "turn", "repeat": repeat, "budget": budget,
                "score_official": float(dice.random() < chance), "status": "ok", "answer": "x", "ctx_tokens": 100,
                "in_tok": 120, "out_tok": 5, "reader_usd": 0.001, "evidence_in_ctx": 0.5,
            }  # fmt: skip
            judged = range(judge_repeats) if judge_repeats > 1 else [None]
            rows += [{**row, "judge_repeat": number} for number in judged]
    return TRIALS.from_rows(rows).to_pandas()


def study(folder, frame, **changes):
    """A study as `read_study` returns it."""
    from akm_harbor.memory.answer.result import StudyResult

    empty = pd.DataFrame()
    return StudyResult(folder, frame, empty, empty, empty, manifest(**changes))
