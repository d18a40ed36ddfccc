"""The tables of the memory study, declared as data: converted benchmarks, and results."""

import pyarrow as pa

from akm_harbor.tables.columns import BOOL, FLOAT, INT, STRING, STRINGS, TIME, Column, Table

FLOATS = pa.list_(pa.float64())

INSTANCES = Table(
    "memory_instances",
    "one history with its questions (a LoCoMo or BEAM conversation, a LongMemEval question's haystack)",
    (
        Column(
            "instance", INT, "position in the source, from 0; the key the other tables are pruned by", required=True
        ),
        Column("instance_id", STRING, "the source's own id (sample_id, question_id, conversation id)", required=True),
        Column("sessions", INT, "number of sessions"),
        Column("turns", INT, "number of turns"),
        Column("questions", INT, "number of questions"),
        Column("text_chars", INT, "characters of all turns"),
        Column("extra_json", STRING, "source fields that no column holds, as JSON; nothing is thrown away"),
    ),
)

TURNS = Table(
    "memory_turns",
    "one turn of one session of one history, in source order",
    (
        Column("instance", INT, "key of memory_instances", required=True),
        Column("session", INT, "position of the session in its history, from 0", required=True),
        Column("session_id", STRING, "the source's id; may occur twice in a history (LongMemEval)"),
        Column("session_date", STRING, "the date as published"),
        Column("session_time", TIME, "the date, parsed; null when absent or unparseable, never a guess"),
        Column("turn", INT, "position of the turn in its session, from 0; null: a session without turns"),
        Column("turn_id", STRING, "the id that evidence refers to (dia_id, message id, session_turn)"),
        Column("speaker", STRING, "who speaks, as published"),
        Column("role", STRING, "user | assistant | other"),
        Column("text", STRING, "what was said"),
        Column("caption", STRING, "caption of a shared image (LoCoMo)"),
        Column("has_answer", BOOL, "the source marks this turn as evidence (LongMemEval)"),
        Column("extra_json", STRING, "source fields that no column holds, as JSON"),
    ),
)

QUESTIONS = Table(
    "memory_questions",
    "one question",
    (
        Column("instance", INT, "key of memory_instances", required=True),
        Column("instance_id", STRING, "the history's own id", required=True),
        Column("question_id", STRING, "unique in the dataset", required=True),
        Column("position", INT, "position among the history's questions, from 0", required=True),
        Column("question", STRING, "the question", required=True),
        Column("question_date", STRING, "when it is asked, as published"),
        Column("question_time", TIME, "the same, parsed"),
        Column("qtype_raw", STRING, "category as published"),
        Column("qtype", STRING, "category by upstream's meaning, e.g. LoCoMo 1 is multi-hop"),
        Column("is_abstention", BOOL, "the right answer is that there is none"),
        Column("answer", STRING, "gold answer as text; null where the source has none"),
        Column("answer_type", STRING, "JSON type it was published as: string | integer | number | list | missing"),
        Column("rubric", STRINGS, "rubric items (BEAM)"),
        Column("evidence_raw", STRINGS, "evidence as published, defects kept"),
        Column("evidence_status", STRING, "ok | none | malformed | dangling"),
        Column("gold_turns", STRINGS, "turn ids of the evidence, as far as they exist"),
        Column("gold_sessions", STRINGS, "session ids of the evidence"),
        Column(
            "gold_turns_repaired", STRINGS, "turn ids after mending malformed evidence; null where nothing was mended"
        ),
        Column("has_user_target", BOOL, "some user turn is marked as evidence (LongMemEval's n=419 denominator)"),
        Column("audit_flag", STRING, "why an audit takes this question out; null: not flagged"),
        Column("extra_json", STRING, "source fields that no column holds, as JSON"),
    ),
)

_WHAT = (
    Column("run_id", STRING, "one probe or one run", required=True),
    Column("benchmark", STRING, "longmemeval | locomo | beam | convomem", required=True),
    Column("variant", STRING, "which file of it, e.g. s_cleaned; `unrecognised` when the digest is not a known one"),
    Column("dataset_sha256", STRING, "digest of the source", required=True),
    Column("dataset_rev", STRING, "the pinned revision the digest belongs to"),
    Column("instance_id", STRING, "the history: the cluster for intervals", required=True),
    Column("question_id", STRING, "the question", required=True),
    Column("qtype_raw", STRING, "category as published"),
    Column("qtype", STRING, "category by upstream's meaning"),
    Column("is_abstention", BOOL, "the right answer is that there is none"),
    Column("arm", STRING, "backend with its settings, e.g. `akm:command=curate,synthesis=lead`", required=True),
)
_HOW = (
    Column("backend", STRING, "the backend's name", required=True),
    Column("backend_version", STRING, "its version"),
    Column("backend_build_sha", STRING, "digest of the program or model it ran"),
    Column("backend_json", STRING, "everything the backend says of itself: settings and found capabilities"),
    Column("protocol_id", STRING, "digest of what must be equal for two numbers to be compared", required=True),
    Column("seed", INT, "seed of the opaque names and of the document order"),
    Column(
        "repeat", INT, "which repeat, from 0; in a probe each has its own names and order, in a study its own answer"
    ),
    Column("topk", INT, "how many hits make the context"),
    Column("granularity", STRING, "turn | session | window:N"),
    Column("corpus", STRING, "all | user: whose turns are stored"),
    Column("query_transform", STRING, "raw | keywords: what was done to the question"),
    Column("budget", INT, "tokens the context was filled up to; null: as is, the first topk documents whole"),
    Column("judge_repeat", INT, "which judgement of the same answer, from 0; null: no judge"),
    Column("question", STRING, "the question as asked"),
    Column("question_date", STRING, "when it is asked, as published"),
    Column("gold_answer", STRING, "the published answer; null where the source has none"),
    Column("rubric", STRINGS, "rubric items (BEAM)"),
)

TRIALS = Table(
    "memory_trials",
    "one question x arm x budget x repeat x judge_repeat (a probe has one budget and no judge)",
    (
        *_WHAT,
        *_HOW,
        Column("ingest_docs", INT, "documents stored for this history"),
        Column("ingest_ms", FLOAT, "time to store them, ms"),
        Column("ingest_llm_tokens", INT, "model tokens spent on storing; null: no model involved"),
        Column("index_bytes", INT, "size of the stored index, bytes"),
        Column("search_ms", FLOAT, "time of this query, ms"),
        Column("n_hits", INT, "hits returned, at most the probe's depth"),
        Column("zero_hit", BOOL, "the backend found nothing"),
        Column("tied_topk", BOOL, "the cut at topk falls inside a group of equal scores"),
        Column("k_ge_corpus", BOOL, "topk is not below the number of documents: everything is retrieved"),
        Column("retrieved_ids", STRINGS, "document keys in rank order (session, session:turn, session:turn-turn)"),
        Column("retrieved_scores", FLOATS, "their scores as the backend gave them"),
        Column("gold_ids", STRINGS, "turn or session ids that count as evidence at this granularity"),
        Column("gold_status", STRING, "ok | none | malformed | dangling; recall is null unless ok"),
        Column("recall_any", FLOAT, "1 if any evidence is among the first topk hits"),
        Column("recall_all", FLOAT, "1 if all of it is"),
        Column("recall_frac", FLOAT, "share of it that is"),
        Column("ndcg_lme", FLOAT, "nDCG by LongMemEval's formula (ranks 1 and 2 weigh the same)"),
        Column("ndcg_std", FLOAT, "nDCG, log2(rank + 1)"),
        Column("mrr", FLOAT, "1 / rank of the first relevant hit, 0 if none was returned"),
        Column("recall_frac_audited", FLOAT, "recall_frac with mended evidence; null for questions an audit takes out"),
        Column("ctx_tokens", INT, "tokens of the context"),
        Column("tokenizer", STRING, "what counted them"),
        Column("ctx_sha256", STRING, "digest of the context"),
        Column("evidence_in_ctx", FLOAT, "share of the evidence turns whose text is in the context"),
        Column("budget_filled", BOOL, "ctx_tokens is within 2% of the budget; null: no budget"),
        Column("prompt_sha256", STRING, "digest of the answer prompt before it is filled in: the same for every arm"),
        Column("reader_call", STRING, "key in memory_calls; the reader's columns are repeated for every judge_repeat"),
        Column("reader_model_req", STRING, "reader asked for"),
        Column("reader_model_served", STRING, "reader that answered"),
        Column("temperature", FLOAT, "reader temperature"),
        Column("max_tokens", INT, "reader limit"),
        Column("finish_reason", STRING, "why the reader stopped"),
        Column("in_tok", INT, "reader prompt tokens"),
        Column("out_tok", INT, "reader completion tokens"),
        Column("reader_usd", FLOAT, "price of the reader's call, USD; null: no call, or its price is unknown"),
        Column("judge_usd", FLOAT, "price of this row's judge calls, USD; null: no call, or its price is unknown"),
        Column("usd", FLOAT, "both together; null: a price is unknown"),
        Column("answer", STRING, "the reader's answer"),
        Column("scorer_id", STRING, "which scorer"),
        Column("scorer_sha", STRING, "digest of the scorer"),
        Column("judge_calls", STRINGS, "keys in memory_calls, in the order the scorer asked"),
        Column("judge_prompt_id", STRING, "digest of the judge's prompt before it is filled in"),
        Column("judge_model_req", STRING, "judge asked for"),
        Column("judge_model_served", STRING, "judge that answered"),
        Column("judge_raw", STRING, "what the judge said; several replies are a JSON list"),
        Column("judge_tokens", INT, "judge tokens, prompt and completion"),
        Column("verdict", STRING, "yes | no | undecided; null: the scorer asks for no such verdict"),
        Column("score_official", FLOAT, "the scorer's score; a row counts in a mean if and only if this is not null"),
        Column("score_aux", FLOAT, "a second score, named in the manifest (`scorer.aux`)"),
        Column("audit_flag", STRING, "why an audit takes this question out"),
        Column(
            "status",
            STRING,
            "ok | empty-answer | refused | undecided | other-model | reader-failed | judge-failed | not-run"
            " | search-failed | ingest-failed",
            required=True,
        ),
        Column("error_class", STRING, "kind of failure"),
        Column("error", STRING, "what failed, in a sentence"),
        Column("attempt", INT, "which attempt, from 1"),
        Column("started_at", TIME, "when the query began"),
    ),
)

RETRIEVAL = Table(
    "memory_retrieval",
    "one memory_trials row x k",
    (
        Column("run_id", STRING, "as in memory_trials", required=True),
        Column("arm", STRING, "as in memory_trials", required=True),
        Column("granularity", STRING, "as in memory_trials", required=True),
        Column("repeat", INT, "as in memory_trials", required=True),
        Column("question_id", STRING, "as in memory_trials", required=True),
        Column("k", INT, "cut-off", required=True),
        Column("recall_any", FLOAT, "1 if any evidence is among the first k hits"),
        Column("recall_all", FLOAT, "1 if all of it is"),
        Column("recall_frac", FLOAT, "share of it that is"),
        Column("ndcg_lme", FLOAT, "nDCG by LongMemEval's formula"),
        Column("ndcg_std", FLOAT, "nDCG, log2(rank + 1)"),
        Column("upstream_recall_any", FLOAT, "LongMemEval's recall_any, its empty-gold rule kept (0)"),
        Column("upstream_recall_all", FLOAT, "LongMemEval's recall_all, its empty-gold rule kept (1)"),
        Column("upstream_ndcg", FLOAT, "LongMemEval's ndcg_any, its empty-gold rule kept (0)"),
        Column("upstream_recall_frac", FLOAT, "LoCoMo's recall, its no-evidence rule kept (1)"),
    ),
)

CALLS = Table(
    "memory_calls",
    "one model call: one distinct request that was answered, or failed for good",
    (
        Column("key", STRING, "digest of endpoint, model, messages, settings and repeat", required=True),
        Column("role", STRING, "reader | judge | probe", required=True),
        Column("status", STRING, "answered | failed", required=True),
        Column("error_class", STRING, "kind of failure"),
        Column("error", STRING, "what failed, in a sentence, secrets taken out"),
        Column("model_req", STRING, "model asked for"),
        Column("model_served", STRING, "model that answered, as the server named it"),
        Column("text", STRING, "what it said"),
        Column("finish_reason", STRING, "why it stopped"),
        Column("in_tok", INT, "prompt tokens, by the server; null: it did not say"),
        Column("out_tok", INT, "completion tokens, by the server"),
        Column("usd", FLOAT, "price; null: unknown"),
        Column("attempts", INT, "requests sent for it"),
        Column("started_at", TIME, "when the last of them was sent"),
        Column("ended_at", TIME, "when it ended"),
    ),
)

SCORES = Table(
    "memory_scores",
    "one arm x budget x group of questions: the published table, which `memory verify` derives again",
    (
        Column("arm", STRING, "as in memory_trials", required=True),
        Column("budget", INT, "as in memory_trials"),
        Column(
            "group",
            STRING,
            "all | without-adversarial (LoCoMo 1-4) | audited | abstention | task-averaged (LongMemEval)"
            " | type:<qtype>",
            required=True,
        ),
        Column("n", INT, "rows in the mean"),
        Column("asked", INT, "rows of the group, scored or not"),
        Column("questions", INT, "questions of the group"),
        Column("histories", INT, "histories they belong to"),
        Column("failed", INT, "rows without a score because something failed"),
        Column("undecided", INT, "rows without a score because the judge said neither yes nor no"),
        Column("mean", FLOAT, "mean of score_official"),
        Column("mean_aux", FLOAT, "mean of score_aux"),
        Column("low", FLOAT, "the mean with every unscored row counted 0"),
        Column("high", FLOAT, "the mean with every unscored row counted 1"),
        Column("se", FLOAT, "standard error of the mean, clustered by history; null: not estimable"),
        Column("ctx_tokens", FLOAT, "mean tokens of the context"),
        Column("in_tok", FLOAT, "mean prompt tokens of the reader"),
        Column("out_tok", FLOAT, "mean completion tokens of the reader"),
        Column("usd_per_question", FLOAT, "mean price of an answer with its judgement, USD; null: a price is unknown"),
        Column("protocol_id", STRING, "as in memory_trials"),
    ),
)

JUDGE_PROBE = Table(
    "memory_judge_probe",
    "one made-up answer put before the judge: how often does it accept what is wrong",
    (
        Column("question_id", STRING, "the question", required=True),
        Column("qtype", STRING, "its category"),
        Column(
            "kind",
            STRING,
            "gold | gold-in-sentence (must be accepted) | vague | topic-only | other-gold | refusal (must not)",
            required=True,
        ),
        Column("answer", STRING, "the made-up answer"),
        Column("expected", STRING, "yes | no", required=True),
        Column("verdict", STRING, "yes | no | undecided; null: the judge's call failed"),
        Column("judge_raw", STRING, "what the judge said"),
        Column("call", STRING, "key in memory_calls"),
        Column("judge_prompt_id", STRING, "digest of the judge's prompt before it is filled in"),
        Column("judge_model_served", STRING, "judge that answered"),
    ),
)
