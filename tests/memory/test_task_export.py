from collections import Counter

import pytest

from akm_harbor.errors import UsageError
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.sources import sources
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.task_export import ExportSettings, draw, export
from akm_harbor.tables import Problems
from akm_harbor.verify.answer_score import score_answer


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    made = {}
    for name in ("locomo", "longmemeval", "beam", "convomem"):
        source = sources()[f"demo-{name}"]
        made[name] = Store(convert(source.path, tmp_path_factory.mktemp(name) / "data", source=source).path)
    return made


def exported(store, **settings):
    problems = Problems()
    return list(export(store, ExportSettings(**settings), problems)), problems


@pytest.mark.parametrize(("name", "count"), [("locomo", 22), ("longmemeval", 12), ("beam", 20)])
def test_every_question_s_own_gold_earns_1_and_silence_0(stores, name, count):
    histories, problems = exported(stores[name])
    questions = [question for history in histories for question in history.questions]
    assert (len(questions), len(problems)) == (count, 0)
    for one in questions:
        assert score_answer(one.grading.spec(), one.grading.answer) == 1
        assert score_answer(one.grading.spec(), "") == 0


def test_stand_ins_never_bear_an_official_name(stores):
    for name in ("longmemeval", "beam"):
        histories, _ = exported(stores[name])
        gradings = [q.grading for h in histories for q in h.questions]
        assert {g.scorer for g in gradings} == {f"{name}-offline/1"}
        assert "official" not in {g.fit for g in gradings}
    locomo, _ = exported(stores["locomo"])
    assert {q.grading.fit for h in locomo for q in h.questions} == {"official"}


def test_no_id_of_the_benchmark_in_what_enters_a_container(stores):
    for name in ("locomo", "longmemeval", "beam"):
        histories, _ = exported(stores[name])
        for history in histories:
            text = "\n".join(
                [
                    history.name,
                    *history.documents,
                    *history.documents.values(),
                    *(f"{n}\n{t}" for n, t in history.files),
                ]
            )
            session_ids = {s.session_id for s in next(stores[name].read([0])).sessions}
            assert not [i for i in session_ids if len(i) > 3 and i in text]
            assert "answer_" not in text
            assert "has_answer" not in text
            for question in history.questions:
                assert question.question.question_id not in question.name


def test_evidence_points_at_documents_that_hold_it(stores):
    histories, _ = exported(stores["longmemeval"])
    seen = 0
    for history in histories:
        for question in history.questions:
            for name in question.evidence:
                seen += any(told in history.documents[name] for told in question.told)
    assert seen >= 10


def test_dates_stand_in_documents_and_files(stores):
    histories, _ = exported(stores["longmemeval"])
    assert all(text.startswith("[2024/") for history in histories for _, text in history.files)
    assert all("[2024/" in text for history in histories for text in history.documents.values())


def test_another_seed_gives_other_names_and_the_same_questions(stores):
    one, _ = exported(stores["locomo"], seed=1)
    two, _ = exported(stores["locomo"], seed=2)
    names = [{q.name for h in histories for q in h.questions} for histories in (one, two)]
    assert not names[0] & names[1]
    assert not set(one[0].documents) & set(two[0].documents)
    assert [h.files for h in one] == [h.files for h in two]


def test_a_draw_keeps_the_share_of_every_type(stores):
    store = stores["beam"]
    drawn = draw(store, ExportSettings(limit=10, seed=4))
    assert Counter(kind for _, kind in drawn.values()) == dict.fromkeys({q.type for q in store.questions()}, 1)
    assert drawn == draw(store, ExportSettings(limit=10, seed=4))
    assert drawn.keys() != draw(store, ExportSettings(limit=10, seed=5)).keys()
    for limit in range(1, 22):
        assert len(draw(stores["locomo"], ExportSettings(limit=limit))) == limit


def test_a_question_without_a_usable_answer_is_left_out_and_told(stores, tmp_path):
    import json

    data = json.loads(sources()["demo-locomo"].path.read_text())
    data[0]["qa"][0]["answer"] = "the, and a"  # nothing is left of it after normalisation
    del data[0]["qa"][1]["answer"]
    (tmp_path / "bad.json").write_text(json.dumps(data))
    store = Store(convert(tmp_path / "bad.json", tmp_path / "out").path)
    histories, problems = exported(store)
    assert sum(len(h.questions) for h in histories) == 20
    assert [(p.kind, p.action) for p in problems] == [("gold-not-scorable", "left out")] * 2


@pytest.mark.parametrize("bad", [{"limit": 0}, {"granularity": "word"}, {"synthesis": "poem"}])
def test_settings_that_do_not_exist(stores, bad):
    with pytest.raises(UsageError):
        exported(stores["locomo"], **bad)


def test_a_benchmark_without_an_offline_scorer(stores):
    with pytest.raises(UsageError, match="convomem has no scorer"):
        exported(stores["convomem"])
