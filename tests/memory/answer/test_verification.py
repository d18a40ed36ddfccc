"""A result is verified from its rows, and whatever is altered is named."""

import json
import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akm_harbor.memory.answer.result import read_study
from akm_harbor.memory.answer.verification import verify
from akm_harbor.memory.columns import CALLS, JUDGE_PROBE, SCORES, TRIALS
from tests.memory.answer.support import declare, execute

pytestmark = pytest.mark.usefixtures("direct")
OPEN = {"gates": {"ceiling": 0.0, "retrieval": 0.0}}


@pytest.fixture
def results(scripted, stores, tmp_path):
    double = scripted(judge=("strict", "prose", "lenient"))
    judged = {"scorer": {"name": "akm-harbor-judge"}, "judge": {"model": "openai/double-judge", "probe": 4}}
    path = declare(tmp_path, double.url, arms=["oracle", "bm25"], budgets=["as-is", 200], sample=9, **judged, **OPEN)
    execute(path, stores["locomo"], tmp_path / "judged")
    path = declare(tmp_path, double.url, arms=["oracle", "bm25"], sample=9, **OPEN)
    execute(path, stores["locomo"], tmp_path / "plain")
    return {name: tmp_path / name for name in ("judged", "plain")}


def alter(result, table, change):
    """Change a table of a result as somebody with a Parquet library would, and what the manifest tells of it."""
    path = result / table.name / "part-0.parquet"
    frame = change(pq.read_table(path).to_pandas())
    pq.write_table(pa.Table.from_pandas(frame, schema=table.schema(), preserve_index=False), path)
    manifest = json.loads((result / "manifest.json").read_text())
    manifest["holds"][table.name]["rows"] = len(frame)
    (result / "manifest.json").write_text(json.dumps(manifest))
    return [str(finding) for finding in verify(read_study(result))]


def put(column, value, row=3):
    def change(frame):
        values = frame[column].astype(object).tolist()
        values[row] = value
        return frame.assign(**{column: pd.Series(values, index=frame.index, dtype=object)})

    return change


def test_a_result_as_it_was_written_is_verified(results):
    for result in results.values():
        assert verify(read_study(result)) == []


def name_of(result, row=3):
    line = read_study(result).trials.iloc[row]
    return f"{line['arm']}, as-is, {line['question_id']}, repeat 0"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("score_official", 0.123),
        ("answer", "something else"),
        ("gold_answer", "something else entirely"),
        ("status", "refused"),
        ("in_tok", 999_999),
        ("reader_usd", 9.9),
        ("reader_model_served", "a-better-model"),
        ("scorer_sha", "0" * 64),
        ("protocol_id", "0" * 12),
        ("qtype_raw", "5"),
    ],
)
def test_an_altered_row_is_named(results, column, value):
    result = results["plain"]
    row = next(
        i for i, r in enumerate(read_study(result).trials.to_dict("records"))
        if r["status"] == "ok" and r["score_official"] > 0 and r["qtype_raw"] != "5"
    )  # fmt: skip
    name = name_of(result, row)
    found = alter(result, TRIALS, put(column, value, row))
    assert any(text.startswith(name) for text in found), found


@pytest.mark.parametrize(("column", "value"), [("verdict", "yes"), ("judge_raw", "yes"), ("score_official", 1.0)])
def test_an_altered_judgement_is_named(results, column, value):
    result = results["judged"]
    rows = read_study(result).trials.to_dict("records")
    row = next(i for i, r in enumerate(rows) if r["verdict"] == "undecided" and pd.isna(r["budget"]))
    found = alter(result, TRIALS, put(column, value, row))
    assert any(text.startswith(name_of(result, row)) for text in found), found


def test_a_row_that_was_taken_away_or_doubled_is_missed(results):
    result = results["plain"]
    shutil.copytree(result, result.with_name("copy"))
    found = alter(result, TRIALS, lambda frame: frame.drop(index=2))
    assert any(": rows is 8, 9 follows" in text and text.startswith("memory_trials: ") for text in found)
    found = alter(result.with_name("copy"), TRIALS, lambda frame: pd.concat([frame, frame.iloc[[2]]]))
    assert any("there twice" in text for text in found)


@pytest.mark.parametrize("column", ["mean", "n", "asked", "low", "usd_per_question", "ctx_tokens"])
def test_an_altered_line_of_the_table_is_named(results, column):
    found = alter(results["judged"], SCORES, put(column, 77, 0))
    assert any(text.startswith(f"memory_scores: oracle, as-is, all: {column} is 77") for text in found), found
    assert len(found) <= 2


def test_a_line_that_is_missing_from_the_table_is_named(results):
    found = alter(results["plain"], SCORES, lambda frame: frame.drop(index=0))
    assert found == ["memory_scores: oracle, as-is, all: the line is 'missing', 'there' follows"]


def test_an_altered_call_is_named_by_the_row_that_rests_on_it(results):
    found = alter(results["plain"], CALLS, put("text", "something else", 0))
    assert any("answer is" in text for text in found)
    found = alter(results["judged"], CALLS, lambda frame: frame.iloc[1:])
    assert any("a call in memory_calls" in text for text in found)


def test_an_altered_probe_of_the_judge_is_named(results):
    found = alter(results["judged"], JUDGE_PROBE, put("verdict", "yes", 0))
    assert any(text.startswith("manifest: judge_probe") for text in found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["protocols"]["as-is"].update(topk=50), "manifest: protocol as-is: id"),
        (lambda m: m["statuses"].update(ok=1), "manifest: statuses"),
        (lambda m: m["spent"].update(reader_usd=0.0), "manifest: spent: reader_usd"),
        (lambda m: m["protocols"]["as-is"].update(reader_served=["gpt-9"]), "reader_served"),
    ],
)
def test_an_altered_manifest_is_named(results, change, said):
    path = results["plain"] / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    found = [str(finding) for finding in verify(read_study(results["plain"]))]
    assert any(said in text for text in found), found
