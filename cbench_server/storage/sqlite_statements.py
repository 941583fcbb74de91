"""Every statement for sqlite, and how a new store is made.

Generated from statements.py by scripts/gen_statements.py: do not edit.
"""

HEAD_REVISION = "0004"
EVENT_COLUMNS = 12
EXAMPLE_COLUMNS = 8
INSERT_RUN = "INSERT INTO runs (run_id, request_id, spec_digest, state, create_time, end_time, last_seq, examples, spool_complete, deleted, pinned, systems, labels, record_sum, sum, record) VALUES (:run_id, :request_id, :spec_digest, :state, :create_time, :end_time, :last_seq, :examples, :spool_complete, :deleted, :pinned, :systems, :labels, :record_sum, :sum, :record)"
INSERT_LABEL = 'INSERT INTO run_labels (run, "key", value, sum) VALUES (:run, :key, :value, :sum)'
FIND_RUN = "SELECT runs.id, runs.run_id, runs.request_id, runs.spec_digest, runs.state, runs.create_time, runs.end_time, runs.last_seq, runs.examples, runs.spool_complete, runs.deleted, runs.pinned, runs.systems, runs.labels, runs.record_sum, runs.sum FROM runs WHERE runs.run_id = :run_id"
LOCK_RUN = "SELECT runs.id, runs.run_id, runs.request_id, runs.spec_digest, runs.state, runs.create_time, runs.end_time, runs.last_seq, runs.examples, runs.spool_complete, runs.deleted, runs.pinned, runs.systems, runs.labels, runs.record_sum, runs.sum FROM runs WHERE runs.run_id = :run_id"
FIND_REQUEST = "SELECT runs.id, runs.run_id, runs.request_id, runs.spec_digest, runs.state, runs.create_time, runs.end_time, runs.last_seq, runs.examples, runs.spool_complete, runs.deleted, runs.pinned, runs.systems, runs.labels, runs.record_sum, runs.sum FROM runs WHERE runs.request_id = :request_id"
LIST_RUNS = "SELECT runs.id, runs.run_id, runs.request_id, runs.spec_digest, runs.state, runs.create_time, runs.end_time, runs.last_seq, runs.examples, runs.spool_complete, runs.deleted, runs.pinned, runs.systems, runs.labels, runs.record_sum, runs.sum FROM runs WHERE runs.run_id < :before ORDER BY runs.run_id DESC"
LIST_RUN_IDS = "SELECT runs.run_id FROM runs WHERE runs.run_id < :before ORDER BY runs.run_id DESC"
READ_RECORD = "SELECT runs.record FROM runs WHERE runs.id = :run"
RECORD_SIZE = "SELECT length(runs.record) AS length_1 FROM runs WHERE runs.id = :run"
READ_LABELS = 'SELECT run_labels.run, run_labels."key", run_labels.value, run_labels.sum FROM run_labels WHERE run_labels.run = :run ORDER BY run_labels."key"'
SET_RECORD = "UPDATE runs SET record=:new_record WHERE runs.id = :run"
SET_HEAD = "UPDATE runs SET state=:new_state, end_time=:new_end_time, last_seq=:new_last_seq, examples=:new_examples, spool_complete=:new_spool_complete, pinned=:new_pinned, systems=:new_systems, record_sum=:new_record_sum, sum=:new_sum WHERE runs.id = :run"
SHOW_RUN = "UPDATE runs SET request_id=:new_request_id, deleted=0 WHERE runs.id = :run"
READ_SYSTEMS = "SELECT run_systems.run, run_systems.number, run_systems.name, run_systems.completed, run_systems.failed, run_systems.reused, run_systems.sum FROM run_systems WHERE run_systems.run = :run ORDER BY run_systems.number"
INSERT_SYSTEM = "INSERT INTO run_systems (run, number, name, completed, failed, reused, sum) VALUES (:run, :number, :name, :completed, :failed, :reused, :sum)"
SET_COUNTERS = "UPDATE run_systems SET completed=:new_completed, failed=:new_failed, reused=:new_reused, sum=:new_sum WHERE run_systems.run = :run AND run_systems.number = :system"
READ_EVENTS = "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.run = :run AND events.seq > :after AND events.seq <= :last_seq ORDER BY events.seq"
READ_HEADS = "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head FROM events WHERE events.run = :run AND events.seq > :after AND events.seq <= :last_seq ORDER BY events.seq"
READ_EVENTS_BUT_ROWS = "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head FROM events WHERE events.run = :run AND events.seq > :after AND events.seq <= :last_seq AND events.system IS NULL ORDER BY events.seq"
READ_COMPLETED = "SELECT events.ordinal, events.repeat FROM events WHERE events.run = :run AND events.system = :system AND events.ordinal >= :start AND events.ordinal < :stop"
READ_ROWS = {
    (False, False): "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head FROM events WHERE events.run = :run AND events.system = :system AND events.ordinal >= :ordinal AND (events.ordinal > :ordinal OR events.repeat > :repeat) AND events.seq <= :last_seq ORDER BY events.ordinal, events.repeat",
    (False, True): "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.run = :run AND events.system = :system AND events.ordinal >= :ordinal AND (events.ordinal > :ordinal OR events.repeat > :repeat) AND events.seq <= :last_seq ORDER BY events.ordinal, events.repeat",
    (True, False): "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head FROM events WHERE events.run = :run AND events.system = :system AND events.ordinal >= :ordinal AND (events.ordinal > :ordinal OR events.repeat > :repeat) AND events.seq <= :last_seq AND events.failed = 1 ORDER BY events.ordinal, events.repeat",
    (True, True): "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.run = :run AND events.system = :system AND events.ordinal >= :ordinal AND (events.ordinal > :ordinal OR events.repeat > :repeat) AND events.seq <= :last_seq AND events.failed = 1 ORDER BY events.ordinal, events.repeat",
}
READ_ROW = "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.run = :run AND events.system = :system AND events.ordinal = :ordinal AND events.repeat = :repeat"
READ_EXAMPLES = "SELECT examples.run, examples.ordinal, examples.dataset, examples.idx, examples.digest, examples.tokens, examples.sum, examples.body FROM examples WHERE examples.run = :run AND examples.ordinal >= :start ORDER BY examples.ordinal"
READ_DIGESTS = "SELECT examples.digest FROM examples WHERE examples.run = :run AND examples.ordinal < :most ORDER BY examples.ordinal"
INSERT_SHARED = "INSERT INTO shared_examples (run, owner, sum) VALUES (:run, :owner, :sum)"
FIND_OWNER = "SELECT shared_examples.owner, shared_examples.sum FROM shared_examples WHERE shared_examples.run = :run"
PLACES = {
    'events': "SELECT events.seq FROM events WHERE events.run = :run ORDER BY events.seq DESC",
    'examples': "SELECT examples.ordinal FROM examples WHERE examples.run = :run ORDER BY examples.ordinal DESC",
}
RUN_NUMBERS = (
    "SELECT runs.id FROM runs ORDER BY runs.id",
    "SELECT runs.id FROM runs ORDER BY runs.run_id",
)
USED_NUMBERS = (
    "SELECT DISTINCT events.run FROM events",
    "SELECT DISTINCT examples.run FROM examples",
)
RUN_KEY = "SELECT runs.id FROM runs WHERE runs.run_id = :run_id"
HEAD_BY_ID = "SELECT runs.id, runs.run_id, runs.request_id, runs.spec_digest, runs.state, runs.create_time, runs.end_time, runs.last_seq, runs.examples, runs.spool_complete, runs.deleted, runs.pinned, runs.systems, runs.labels, runs.record_sum, runs.sum FROM runs WHERE runs.id = :run"
RENUMBER_RUN = "UPDATE runs SET id=:new_id, run_id=:new_run_id WHERE runs.id = :run"
HIDE_RUN = "UPDATE runs SET request_id=NULL, deleted=1, sum=:new_sum WHERE runs.id = :run"
RUN_SIZES = (
    "SELECT length(runs.record) AS length_1 FROM runs WHERE runs.id = :run",
    "SELECT sum(length(events.head) + coalesce(length(events.body), 0)) AS sum_1 FROM events WHERE events.run = :run",
    "SELECT sum(length(examples.body)) AS sum_1 FROM examples WHERE examples.run = :run",
)
EVENT_SIZES = "SELECT events.seq, length(events.head) + coalesce(length(events.body), 0) AS anon_1 FROM events WHERE events.run = :run ORDER BY events.seq"
EXAMPLE_SIZES = "SELECT examples.ordinal, length(examples.body) AS length_1 FROM examples WHERE examples.run = :run ORDER BY examples.ordinal"
DELETE_EVENTS = "DELETE FROM events WHERE events.run = :run AND events.seq <= :last"
DELETE_EXAMPLES = "DELETE FROM examples WHERE examples.run = :run AND examples.ordinal <= :last"
IS_SHARED = "SELECT EXISTS (SELECT * FROM shared_examples WHERE shared_examples.owner = :run) AS anon_1"
HAS_EVENTS = "SELECT EXISTS (SELECT * FROM events WHERE events.run = :run) AS anon_1"
IS_DELETED = "SELECT runs.deleted FROM runs WHERE runs.id = :run"
DELETE_PARTS = (
    "DELETE FROM run_systems WHERE run_systems.run = :run",
    "DELETE FROM run_labels WHERE run_labels.run = :run",
)
DELETE_RUN = (
    "DELETE FROM shared_examples WHERE shared_examples.run = :run",
    "DELETE FROM runs WHERE runs.id = :run",
)
INSERT_INTENT = "INSERT INTO intents (run_id, kind, arguments, time, sum) VALUES (:run_id, :kind, :arguments, :time, :sum) RETURNING id"
OPEN_INTENTS = "SELECT intents.id, intents.run_id, intents.kind, intents.arguments, intents.time, intents.answer, intents.sum FROM intents WHERE intents.answer IS NULL ORDER BY intents.id"
READ_INTENT = "SELECT intents.id, intents.run_id, intents.kind, intents.arguments, intents.time, intents.answer, intents.sum FROM intents WHERE intents.id = :intent"
SET_ANSWER = "UPDATE intents SET answer=:new_answer, sum=:new_sum WHERE intents.id = :intent"
DELETE_INTENT = "DELETE FROM intents WHERE intents.id = :intent"
FORGET_INTENTS = "DELETE FROM intents WHERE intents.time < :before"
CREATE = (
    "CREATE TABLE alembic_version ( version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num) )",
    "CREATE TABLE runs ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, request_id TEXT, spec_digest TEXT NOT NULL, state TEXT NOT NULL, create_time FLOAT NOT NULL, end_time FLOAT, last_seq BIGINT NOT NULL, examples BIGINT NOT NULL, spool_complete BOOLEAN NOT NULL, deleted BOOLEAN NOT NULL, pinned BOOLEAN NOT NULL, systems INTEGER NOT NULL, labels INTEGER NOT NULL, record_sum BIGINT NOT NULL, sum BIGINT NOT NULL, record BLOB NOT NULL, UNIQUE (run_id), UNIQUE (request_id) )",
    'CREATE TABLE run_labels ( run INTEGER NOT NULL, "key" TEXT NOT NULL, value TEXT NOT NULL, sum BIGINT NOT NULL, PRIMARY KEY (run, "key"), FOREIGN KEY(run) REFERENCES runs (id) )',
    "CREATE TABLE run_systems ( run INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, completed BIGINT NOT NULL, failed BIGINT NOT NULL, reused BIGINT NOT NULL, sum BIGINT NOT NULL, PRIMARY KEY (run, number), FOREIGN KEY(run) REFERENCES runs (id) )",
    "CREATE TABLE events ( run INTEGER NOT NULL, seq BIGINT NOT NULL, kind INTEGER NOT NULL, time FLOAT NOT NULL, system INTEGER, ordinal BIGINT, repeat INTEGER, failed BOOLEAN NOT NULL, head_sum BIGINT NOT NULL, body_sum BIGINT NOT NULL, head BLOB NOT NULL, body BLOB, PRIMARY KEY (run, seq), FOREIGN KEY(run) REFERENCES runs (id) )",
    "CREATE TABLE examples ( run INTEGER NOT NULL, ordinal BIGINT NOT NULL, dataset TEXT NOT NULL, idx BIGINT NOT NULL, digest TEXT NOT NULL, tokens BLOB NOT NULL, sum BIGINT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run, ordinal), FOREIGN KEY(run) REFERENCES runs (id) )",
    "CREATE TABLE shared_examples ( run INTEGER NOT NULL, owner INTEGER NOT NULL, sum BIGINT NOT NULL, PRIMARY KEY (run), FOREIGN KEY(run) REFERENCES runs (id), FOREIGN KEY(owner) REFERENCES runs (id) )",
    "CREATE TABLE intents ( id INTEGER NOT NULL, run_id TEXT NOT NULL, kind TEXT NOT NULL, arguments BLOB NOT NULL, time FLOAT NOT NULL, answer BLOB, sum BIGINT NOT NULL, PRIMARY KEY (id) )",
    "CREATE INDEX events_but_rows ON events (run, seq) WHERE system IS NULL",
    "CREATE INDEX examples_owner ON shared_examples (owner)",
    "CREATE INDEX failed_rows ON events (failed, run, system, ordinal, repeat) WHERE failed",
    "CREATE UNIQUE INDEX row_key ON events (run, system, ordinal, repeat) WHERE system IS NOT NULL",
    "INSERT INTO alembic_version (version_num) VALUES ('0004')",
)
DEFER_REFERENCES = (
    "PRAGMA defer_foreign_keys = ON",
)
PLACED_ROWS = {
    ('events', 'window'): "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.run = :run AND events.seq >= :start AND events.seq < :stop ORDER BY events.seq",
    ('examples', 'window'): "SELECT examples.run, examples.ordinal, examples.dataset, examples.idx, examples.digest, examples.tokens, examples.sum, examples.body FROM examples WHERE examples.run = :run AND examples.ordinal >= :start AND examples.ordinal < :stop ORDER BY examples.ordinal",
    ('events', 'block'): "SELECT events.rowid, events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.rowid >= :start AND events.rowid < :stop",
    ('events', 'by_rowid'): "SELECT events.rowid, events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.rowid = :rowid",
    ('events', 'last_rowid'): "SELECT max(events.rowid) AS max_1 FROM events",
    ('events', 'next_rowid'): "SELECT min(events.rowid) AS min_1 FROM events WHERE events.rowid >= :start",
    ('examples', 'block'): "SELECT examples.rowid, examples.run, examples.ordinal, examples.dataset, examples.idx, examples.digest, examples.tokens, examples.sum, examples.body FROM examples WHERE examples.rowid >= :start AND examples.rowid < :stop",
    ('examples', 'by_rowid'): "SELECT examples.rowid, examples.run, examples.ordinal, examples.dataset, examples.idx, examples.digest, examples.tokens, examples.sum, examples.body FROM examples WHERE examples.rowid = :rowid",
    ('examples', 'last_rowid'): "SELECT max(examples.rowid) AS max_1 FROM examples",
    ('examples', 'next_rowid'): "SELECT min(examples.rowid) AS min_1 FROM examples WHERE examples.rowid >= :start",
}
INSERT_EVENT_IF_NEW = "INSERT INTO events (run, seq, kind, time, system, ordinal, repeat, failed, head_sum, body_sum, head, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, system, ordinal, repeat) WHERE system IS NOT NULL DO NOTHING"
INSERT_EVENTS = {count: "INSERT INTO events (run, seq, kind, time, system, ordinal, repeat, failed, head_sum, body_sum, head, body) VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * count) + "" for count in (64, 8, 1)}
INSERT_EXAMPLES = {count: "INSERT INTO examples (run, ordinal, dataset, idx, digest, tokens, sum, body) VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * count) + " ON CONFLICT DO NOTHING" for count in (64, 8, 1)}
