"""One answer prompt for all arms: dates reach it, its digest names it."""

import dataclasses

import pytest

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory.answer.prompt import ANSWER_PROMPT, load_prompt


def user(context="[8 May 2023]\nAnn: I bought a boat.", question="What did Ann buy?", date="2023/06/01"):
    return ANSWER_PROMPT.messages(context, question, date)[-1]["content"]


def test_context_question_and_both_dates_reach_the_reader():
    text = user()
    for part in ("[8 May 2023]", "Ann: I bought a boat.", "What did Ann buy?", "asked on 2023/06/01"):
        assert part in text


def test_a_question_without_a_date_says_so_and_an_empty_context_too():
    assert "has no date" in user(date=None)
    assert "(nothing was found)" in user(context="")


def test_what_fills_a_slot_is_not_read_as_a_slot():
    text = user(context="{question} {date} {context}", question="{context}?")
    assert "{question} {date} {context}" in text
    assert "Question: {context}?" in text


def test_the_digest_depends_on_every_word_of_ours_and_on_nothing_else():
    digests = {ANSWER_PROMPT.sha256}
    for field in ("system", "user", "dated", "undated", "nothing"):
        digests.add(dataclasses.replace(ANSWER_PROMPT, **{field: getattr(ANSWER_PROMPT, field) + " "}).sha256)
    assert len(digests) == 6
    assert dataclasses.replace(ANSWER_PROMPT, name="other").sha256 == ANSWER_PROMPT.sha256


def test_a_prompt_of_the_users_own(tmp_path):
    (tmp_path / "mine.txt").write_text("{date}\n{context}\nQ: {question}")
    prompt = load_prompt(tmp_path / "mine.txt")
    assert prompt.messages("c", "q", None) == [{"role": "user", "content": "The question has no date.\nc\nQ: q"}]
    assert prompt.sha256 != ANSWER_PROMPT.sha256


@pytest.mark.parametrize("text", ["{context} {question}", "{context}{context}{question}{date}", ""])
def test_a_prompt_without_one_of_each_slot_is_refused(tmp_path, text):
    (tmp_path / "mine.txt").write_text(text)
    with pytest.raises(UsageError, match="exactly once"):
        load_prompt(tmp_path / "mine.txt")
    with pytest.raises(AkmHarborError, match="cannot be read"):
        load_prompt(tmp_path / "none.txt")
