"""The canary tables, column by column. What akm stored keeps akm's own names."""

from akm_harbor.tables.columns import BOOL, FLOAT, INT, STRING, STRINGS, TIME, Column, Table

_AKM = "state.db:improve_cycle_metrics."

CYCLES = Table(
    "canary_cycles",
    "one cycle of one store: a consolidation run akm measured, or one of our snapshots",
    (
        Column("store", STRING, "which store, a label unique in the dataset", required=True),
        Column("source", STRING, "`state.db`, `backup` (a copy akm left before a migration) or `snapshot`"),
        Column("id", INT, "row number in its source", _AKM + "id"),
        Column("run_id", STRING, "the run, or `snapshot-<build>` for ours", _AKM + "run_id", required=True),
        Column("ts", TIME, "when it was measured", _AKM + "ts", required=True),
        Column("pass", STRING, "consolidate, recombine or both; snapshot for ours", _AKM + "pass"),
        Column(
            "canary_set_id",
            STRING,
            "the frozen set; rows of two sets are never compared",
            _AKM + "canary_set_id",
            required=True,
        ),
        Column("mean_recall", FLOAT, "canaries found in the top K, as a share", _AKM + "mean_recall"),
        Column("mean_ndcg", FLOAT, "mean nDCG@K, one relevant asset a canary", _AKM + "mean_ndcg"),
        Column("mean_mrr", FLOAT, "mean reciprocal rank", _AKM + "mean_mrr"),
        Column(
            "canary_ranks_json",
            STRING,
            "`[[canary id, 0-based rank or -1], ...]`",
            _AKM + "canary_ranks_json",
            required=True,
        ),
        Column("store_total", INT, "memories, lessons and knowledge", _AKM + "store_total"),
        Column("store_by_type_json", STRING, "assets of every type", _AKM + "store_by_type_json"),
        Column("distinct_content_ratio", FLOAT, "distinct contents / store_total", _AKM + "distinct_content_ratio"),
        Column(
            "mean_bigram_diversity", FLOAT, "1 = no word pair repeats inside an asset", _AKM + "mean_bigram_diversity"
        ),
        Column("over_generation_count", INT, "assets merged more often than allowed", _AKM + "over_generation_count"),
        Column("accepted_actions", INT, "as stored; akm 0.9.0 always writes 0", _AKM + "accepted_actions"),
        Column("merge_floor_violations", INT, "merges below the floor in this cycle", _AKM + "merge_floor_violations"),
        Column("alerts_json", STRING, "kinds akm raised", _AKM + "alerts_json"),
        # ours
        Column("n_canaries", INT, "canaries asked"),
        Column("n_hits", INT, "canaries found"),
        Column("accepted_measured", INT, "accepted changes since the cycle before, counted by us; null where unknown"),
        Column("accepted_source", STRING, "`improve_runs`, `proposals` or `improve_ledger`"),
        Column("distinct_contents", INT, "distinct contents, the ratio's numerator"),
        Column("store_entries", INT, "assets of all types"),
        Column("k", INT, "K of the top K"),
        Column("max_generation", INT, "merges allowed before an asset counts as over-generated"),
        Column("layout", STRING, "how the index was queried (snapshots)"),
        Column("index_version", STRING, "index_meta.version (snapshots)"),
        Column("index_built_at", TIME, "index_meta.builtAt (snapshots)"),
        Column("build_id", STRING, "digest of the index build: one build, one row (snapshots)"),
    ),
)

QUERIES = Table(
    "canary_queries",
    "one canary: a fixed question and the asset that should answer it",
    (
        Column("store", STRING, "which store", required=True),
        Column("id", INT, "number, not contiguous and not from 1", "state.db:canary_queries.id", required=True),
        Column("canary_set_id", STRING, "its frozen set", "state.db:canary_queries.canary_set_id", required=True),
        Column(
            "anchor_ref", STRING, "the asset, in whatever spelling was stored", "state.db:canary_queries.anchor_ref"
        ),
        Column("query", STRING, "the question as asked", "state.db:canary_queries.query"),
        Column("source", STRING, "auto or manual", "state.db:canary_queries.source"),
        Column("active", INT, "1 until a refresh replaces the set", "state.db:canary_queries.active"),
        Column("created_at", TIME, "mint time", "state.db:canary_queries.created_at"),
        Column("anchor_type", STRING, "memory, lesson or knowledge, from the reference"),
    ),
)

RANKS = Table(
    "canary_ranks",
    "one canary in one cycle",
    (
        Column("store", STRING, "which store", required=True),
        Column("run_id", STRING, "the cycle's run", required=True),
        Column("ts", TIME, "the cycle's time", required=True),
        Column("canary_set_id", STRING, "its frozen set", required=True),
        Column("canary_id", INT, "the canary", required=True),
        Column("anchor_ref", STRING, "its asset, as a short id"),
        Column("rank", INT, "0-based, -1 for a miss"),
        Column("hit", BOOL, "found in the top K"),
        Column("hit_ref", STRING, "the asset that counted (snapshots)"),
        Column("hit_by", STRING, "`anchor`, or `xref`: a result names the anchor as its source (snapshots)"),
        Column("first_ref", STRING, "the best result, whatever it is (snapshots)"),
        Column("results", INT, "results that came back, at most K (snapshots)"),
        Column("anchor_present", BOOL, "the anchor is still indexed (snapshots)"),
        Column("followers", STRINGS, "assets that name the anchor as their source (snapshots)"),
    ),
)

RUNS = Table(
    "canary_runs",
    "one improve run of akm",
    (
        Column("store", STRING, "which store", required=True),
        Column("id", STRING, "run id", "state.db:improve_runs.id", required=True),
        Column("started_at", TIME, "start", "state.db:improve_runs.started_at"),
        Column("completed_at", TIME, "end; null while it runs or after a crash", "state.db:improve_runs.completed_at"),
        Column("dry_run", BOOL, "nothing was changed", "state.db:improve_runs.dry_run"),
        Column("profile", STRING, "profile, or the strategy of newer rows", "state.db:improve_runs.profile"),
        Column("scope_mode", STRING, "all, type or ref", "state.db:improve_runs.scope_mode"),
        Column("ok", BOOL, "ended well", "state.db:improve_runs.ok"),
        Column("planned_count", INT, "planned", "improve_runs.metrics_json:plannedCount"),
        Column("actions_count", INT, "done", "improve_runs.metrics_json:actionsCount"),
        Column("accepted_count", INT, "accepted changes", "improve_runs.metrics_json:acceptedCount"),
        Column("rejected_count", INT, "rejected", "improve_runs.metrics_json:rejectedCount"),
        Column("skipped_count", INT, "skipped", "improve_runs.metrics_json:skippedCount"),
        Column("error_count", INT, "failed", "improve_runs.metrics_json:errorCount"),
    ),
)

DETECTOR_EVENTS = Table(
    "canary_events",
    "one alert event akm's own detector wrote",
    (
        Column("store", STRING, "which store", required=True),
        Column("id", INT, "event id", "state.db:events.id"),
        Column("ts", TIME, "when", "state.db:events.ts", required=True),
        Column("kind", STRING, "merge-floor, collapse-recall, ...", "events.metadata_json:kind"),
        Column("detail", STRING, "akm's sentence", "events.metadata_json:detail"),
        Column("metrics_json", STRING, "akm's numbers", "events.metadata_json:metrics"),
        Column("canary_set_id", STRING, "the set", "events.metadata_json:canarySetId"),
        Column("run_id", STRING, "the run", "events.metadata_json:runId"),
    ),
)

ACTIONS = Table(
    "canary_actions",
    "accepted changes of one store on one day, by where they are recorded",
    (
        Column("store", STRING, "which store", required=True),
        Column("day", TIME, "the day, UTC midnight", required=True),
        Column("source", STRING, "`improve_runs`, `proposals` or `improve_ledger`", required=True),
        Column("accepted", INT, "accepted changes"),
    ),
)

TABLES = (CYCLES, QUERIES, RANKS, RUNS, DETECTOR_EVENTS, ACTIONS)
