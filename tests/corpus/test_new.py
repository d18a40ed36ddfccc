"""A new task passes the linter as it is written."""

import pytest

from akm_harbor.corpus import lint
from akm_harbor.corpus.new import new_task
from akm_harbor.errors import AkmHarborError

from .support import ASSET, write


@pytest.mark.sandbox
@pytest.mark.parametrize("verifier", ["script", "pytest"])
@pytest.mark.parametrize("gold", ["", "knowledge/gauges"])
def test_a_new_task_passes_the_linter(tmp_path, verifier, gold):
    write(tmp_path / "agents/bundles/works/knowledge/gauges.md", ASSET)
    new_task(tmp_path / "tasks", "works--gauge", bundle="works", gold_ref=gold, verifier=verifier)
    corpus, findings = lint.read_corpus(tmp_path / "tasks")
    findings += lint.run_rules(corpus, lint.select({"static", "run"}))
    assert lint.report(findings, tmp_path) == ""


def test_what_cannot_be_started(tmp_path):
    with pytest.raises(AkmHarborError, match="not of the form"):
        new_task(tmp_path, "Gauge", bundle="works", gold_ref="", verifier="script")
    with pytest.raises(AkmHarborError, match="no kind of verifier"):
        new_task(tmp_path, "works--gauge", bundle="works", gold_ref="", verifier="regex")
    new_task(tmp_path, "works--gauge", bundle="works", gold_ref="", verifier="script")
    with pytest.raises(AkmHarborError, match="exists already"):
        new_task(tmp_path, "works--gauge", bundle="works", gold_ref="", verifier="script")
