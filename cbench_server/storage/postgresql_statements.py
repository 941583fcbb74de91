"""Every statement for postgresql, and how a new store is made.

Generated from statements.py by scripts/gen_statements.py: do not edit.
"""

HEAD_REVISION = "0004"
EVENT_COLUMNS = 12
EXAMPLE_COLUMNS = 8
INSERT_RUN = 'INSERT INTO runs (run_id, request_id, spec_digest, state, create_time, end_time, last_seq, examples, spool_complete, deleted, pinned, systems, labels, record_sum, sum, record) VALUES (%(run_id)s::VARCHAR COLLATE "C", %(request_id)s::VARCHAR, %(spec_digest)s::VARCHAR, %(state)s::VARCHAR, %(create_time)s, %(end_time)s, %(last_seq)s::BIGINT, %(examples)s::BIGINT, %(spool_complete)s, %(deleted)s, %(pinned)s, %(systems)s::INTEGER, %(labels)s::INTEGER, %(record_sum)s::BIGINT, %(sum)s::BIGINT, %(record)s) RETURNING runs.id'
INSERT_LABEL = "INSERT INTO run_labels (run, key, value, sum) VALUES (%(run)s::INTEGER, %(key)s::VARCHAR, %(value)s::VARCHAR, %(sum)s::BIGINT)"
FIND_RUN = 'SELECT runs.id, runs.run_id, runs.request_id, runs.spec_digest, runs.state, runs.create_time, runs.end_time, runs.last_seq, runs.examples, runs.spool_complete, runs.deleted, runs.pinned, runs.systems, runs.labels, runs.record_sum, runs.sum FROM runs WHERE runs.run_id = %(run_id)s::VARCHAR COLLATE "C"'
LOCK_RUN = 'SELECT runs.id, runs.run_id, runs.request_id, runs.spec_digest, runs.state, runs.create_time, runs.end_time, runs.last_seq, runs.examples, runs.spool_complete, runs.deleted, runs.pinned, runs.systems, runs.labels, runs.record_sum, runs.sum FROM runs WHERE runs.run_id = %(run_id)s::VARCHAR COLLATE "C" FOR UPDATE'
FIND_REQUEST = "SELECT runs.id, runs.run_id, runs.request_id, runs.spec_digest, runs.state, runs.create_time, runs.end_time, runs.last_seq, runs.examples, runs.spool_complete, runs.deleted, runs.pinned, runs.systems, runs.labels, runs.record_sum, runs.sum FROM runs WHERE runs.request_id = %(request_id)s::VARCHAR"
LIST_RUNS = 'SELECT runs.id, runs.run_id, runs.request_id, runs.spec_digest, runs.state, runs.create_time, runs.end_time, runs.last_seq, runs.examples, runs.spool_complete, runs.deleted, runs.pinned, runs.systems, runs.labels, runs.record_sum, runs.sum FROM runs WHERE runs.run_id < %(before)s::VARCHAR COLLATE "C" ORDER BY runs.run_id DESC'
LIST_RUN_IDS = 'SELECT runs.run_id FROM runs WHERE runs.run_id < %(before)s::VARCHAR COLLATE "C" ORDER BY runs.run_id DESC'
READ_RECORD = "SELECT runs.record FROM runs WHERE runs.id = %(run)s::INTEGER"
RECORD_SIZE = "SELECT length(runs.record) AS length_1 FROM runs WHERE runs.id = %(run)s::INTEGER"
READ_LABELS = "SELECT run_labels.run, run_labels.key, run_labels.value, run_labels.sum FROM run_labels WHERE run_labels.run = %(run)s::INTEGER ORDER BY run_labels.key"
SET_RECORD = "UPDATE runs SET record=%(new_record)s WHERE runs.id = %(run)s::INTEGER"
SET_HEAD = "UPDATE runs SET state=%(new_state)s::VARCHAR, end_time=%(new_end_time)s, last_seq=%(new_last_seq)s::BIGINT, examples=%(new_examples)s::BIGINT, spool_complete=%(new_spool_complete)s, pinned=%(new_pinned)s, systems=%(new_systems)s::INTEGER, record_sum=%(new_record_sum)s::BIGINT, sum=%(new_sum)s::BIGINT WHERE runs.id = %(run)s::INTEGER"
SHOW_RUN = "UPDATE runs SET request_id=%(new_request_id)s::VARCHAR, deleted=false WHERE runs.id = %(run)s::INTEGER"
READ_SYSTEMS = "SELECT run_systems.run, run_systems.number, run_systems.name, run_systems.completed, run_systems.failed, run_systems.reused, run_systems.sum FROM run_systems WHERE run_systems.run = %(run)s::INTEGER ORDER BY run_systems.number"
INSERT_SYSTEM = "INSERT INTO run_systems (run, number, name, completed, failed, reused, sum) VALUES (%(run)s::INTEGER, %(number)s::INTEGER, %(name)s::VARCHAR, %(completed)s::BIGINT, %(failed)s::BIGINT, %(reused)s::BIGINT, %(sum)s::BIGINT)"
SET_COUNTERS = "UPDATE run_systems SET completed=%(new_completed)s::BIGINT, failed=%(new_failed)s::BIGINT, reused=%(new_reused)s::BIGINT, sum=%(new_sum)s::BIGINT WHERE run_systems.run = %(run)s::INTEGER AND run_systems.number = %(system)s::INTEGER"
READ_EVENTS = "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.run = %(run)s::INTEGER AND events.seq > %(after)s::BIGINT AND events.seq <= %(last_seq)s::BIGINT ORDER BY events.seq"
READ_HEADS = "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head FROM events WHERE events.run = %(run)s::INTEGER AND events.seq > %(after)s::BIGINT AND events.seq <= %(last_seq)s::BIGINT ORDER BY events.seq"
READ_EVENTS_BUT_ROWS = "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head FROM events WHERE events.run = %(run)s::INTEGER AND events.seq > %(after)s::BIGINT AND events.seq <= %(last_seq)s::BIGINT AND events.system IS NULL ORDER BY events.seq"
READ_COMPLETED = "SELECT events.ordinal, events.repeat FROM events WHERE events.run = %(run)s::INTEGER AND events.system = %(system)s::INTEGER AND events.ordinal >= %(start)s::BIGINT AND events.ordinal < %(stop)s::BIGINT"
READ_ROWS = {
    (False, False): "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head FROM events WHERE events.run = %(run)s::INTEGER AND events.system = %(system)s::INTEGER AND events.ordinal >= %(ordinal)s::BIGINT AND (events.ordinal > %(ordinal)s::BIGINT OR events.repeat > %(repeat)s::INTEGER) AND events.seq <= %(last_seq)s::BIGINT ORDER BY events.ordinal, events.repeat",
    (False, True): "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.run = %(run)s::INTEGER AND events.system = %(system)s::INTEGER AND events.ordinal >= %(ordinal)s::BIGINT AND (events.ordinal > %(ordinal)s::BIGINT OR events.repeat > %(repeat)s::INTEGER) AND events.seq <= %(last_seq)s::BIGINT ORDER BY events.ordinal, events.repeat",
    (True, False): "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head FROM events WHERE events.run = %(run)s::INTEGER AND events.system = %(system)s::INTEGER AND events.ordinal >= %(ordinal)s::BIGINT AND (events.ordinal > %(ordinal)s::BIGINT OR events.repeat > %(repeat)s::INTEGER) AND events.seq <= %(last_seq)s::BIGINT AND events.failed ORDER BY events.ordinal, events.repeat",
    (True, True): "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.run = %(run)s::INTEGER AND events.system = %(system)s::INTEGER AND events.ordinal >= %(ordinal)s::BIGINT AND (events.ordinal > %(ordinal)s::BIGINT OR events.repeat > %(repeat)s::INTEGER) AND events.seq <= %(last_seq)s::BIGINT AND events.failed ORDER BY events.ordinal, events.repeat",
}
READ_ROW = "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.run = %(run)s::INTEGER AND events.system = %(system)s::INTEGER AND events.ordinal = %(ordinal)s::BIGINT AND events.repeat = %(repeat)s::INTEGER"
READ_EXAMPLES = "SELECT examples.run, examples.ordinal, examples.dataset, examples.idx, examples.digest, examples.tokens, examples.sum, examples.body FROM examples WHERE examples.run = %(run)s::INTEGER AND examples.ordinal >= %(start)s::BIGINT ORDER BY examples.ordinal"
READ_DIGESTS = "SELECT examples.digest FROM examples WHERE examples.run = %(run)s::INTEGER AND examples.ordinal < %(most)s::BIGINT ORDER BY examples.ordinal"
INSERT_SHARED = "INSERT INTO shared_examples (run, owner, sum) VALUES (%(run)s::INTEGER, %(owner)s::INTEGER, %(sum)s::BIGINT)"
FIND_OWNER = "SELECT shared_examples.owner, shared_examples.sum FROM shared_examples WHERE shared_examples.run = %(run)s::INTEGER"
PLACES = {
    'events': "SELECT events.seq FROM events WHERE events.run = %(run)s::INTEGER ORDER BY events.seq DESC",
    'examples': "SELECT examples.ordinal FROM examples WHERE examples.run = %(run)s::INTEGER ORDER BY examples.ordinal DESC",
}
RUN_NUMBERS = (
    "SELECT runs.id FROM runs ORDER BY runs.id",
    "SELECT runs.id FROM runs ORDER BY runs.run_id",
)
USED_NUMBERS = (
    "SELECT DISTINCT events.run FROM events",
    "SELECT DISTINCT examples.run FROM examples",
)
RUN_KEY = 'SELECT runs.id FROM runs WHERE runs.run_id = %(run_id)s::VARCHAR COLLATE "C"'
HEAD_BY_ID = "SELECT runs.id, runs.run_id, runs.request_id, runs.spec_digest, runs.state, runs.create_time, runs.end_time, runs.last_seq, runs.examples, runs.spool_complete, runs.deleted, runs.pinned, runs.systems, runs.labels, runs.record_sum, runs.sum FROM runs WHERE runs.id = %(run)s::INTEGER"
RENUMBER_RUN = 'UPDATE runs SET id=%(new_id)s::INTEGER, run_id=%(new_run_id)s::VARCHAR COLLATE "C" WHERE runs.id = %(run)s::INTEGER'
HIDE_RUN = "UPDATE runs SET request_id=NULL, deleted=true, sum=%(new_sum)s::BIGINT WHERE runs.id = %(run)s::INTEGER"
RUN_SIZES = (
    "SELECT length(runs.record) AS length_1 FROM runs WHERE runs.id = %(run)s::INTEGER",
    "SELECT sum(length(events.head) + coalesce(length(events.body), 0)) AS sum_1 FROM events WHERE events.run = %(run)s::INTEGER",
    "SELECT sum(length(examples.body)) AS sum_1 FROM examples WHERE examples.run = %(run)s::INTEGER",
)
EVENT_SIZES = "SELECT events.seq, length(events.head) + coalesce(length(events.body), 0) AS anon_1 FROM events WHERE events.run = %(run)s::INTEGER ORDER BY events.seq"
EXAMPLE_SIZES = "SELECT examples.ordinal, length(examples.body) AS length_1 FROM examples WHERE examples.run = %(run)s::INTEGER ORDER BY examples.ordinal"
DELETE_EVENTS = "DELETE FROM events WHERE events.run = %(run)s::INTEGER AND events.seq <= %(last)s::BIGINT"
DELETE_EXAMPLES = "DELETE FROM examples WHERE examples.run = %(run)s::INTEGER AND examples.ordinal <= %(last)s::BIGINT"
IS_SHARED = "SELECT EXISTS (SELECT * FROM shared_examples WHERE shared_examples.owner = %(run)s::INTEGER) AS anon_1"
HAS_EVENTS = "SELECT EXISTS (SELECT * FROM events WHERE events.run = %(run)s::INTEGER) AS anon_1"
IS_DELETED = "SELECT runs.deleted FROM runs WHERE runs.id = %(run)s::INTEGER"
DELETE_PARTS = (
    "DELETE FROM run_systems WHERE run_systems.run = %(run)s::INTEGER",
    "DELETE FROM run_labels WHERE run_labels.run = %(run)s::INTEGER",
)
DELETE_RUN = (
    "DELETE FROM shared_examples WHERE shared_examples.run = %(run)s::INTEGER",
    "DELETE FROM runs WHERE runs.id = %(run)s::INTEGER",
)
INSERT_INTENT = 'INSERT INTO intents (run_id, kind, arguments, time, sum) VALUES (%(run_id)s::VARCHAR COLLATE "C", %(kind)s::VARCHAR, %(arguments)s, %(time)s, %(sum)s::BIGINT) RETURNING intents.id'
OPEN_INTENTS = "SELECT intents.id, intents.run_id, intents.kind, intents.arguments, intents.time, intents.answer, intents.sum FROM intents WHERE intents.answer IS NULL ORDER BY intents.id"
READ_INTENT = "SELECT intents.id, intents.run_id, intents.kind, intents.arguments, intents.time, intents.answer, intents.sum FROM intents WHERE intents.id = %(intent)s::INTEGER"
SET_ANSWER = "UPDATE intents SET answer=%(new_answer)s, sum=%(new_sum)s::BIGINT WHERE intents.id = %(intent)s::INTEGER"
DELETE_INTENT = "DELETE FROM intents WHERE intents.id = %(intent)s::INTEGER"
FORGET_INTENTS = "DELETE FROM intents WHERE intents.time < %(before)s"
CREATE = (
    "CREATE TABLE alembic_version ( version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num) )",
    "CREATE SEQUENCE lease_epochs",
    'CREATE TABLE runs ( id SERIAL NOT NULL, run_id TEXT COLLATE "C" NOT NULL, request_id TEXT, spec_digest TEXT NOT NULL, state TEXT NOT NULL, create_time FLOAT NOT NULL, end_time FLOAT, last_seq BIGINT NOT NULL, examples BIGINT NOT NULL, spool_complete BOOLEAN NOT NULL, deleted BOOLEAN NOT NULL, pinned BOOLEAN NOT NULL, systems INTEGER NOT NULL, labels INTEGER NOT NULL, record_sum BIGINT NOT NULL, sum BIGINT NOT NULL, record BYTEA NOT NULL, PRIMARY KEY (id), UNIQUE (run_id), UNIQUE (request_id) )',
    "CREATE TABLE run_labels ( run INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, sum BIGINT NOT NULL, PRIMARY KEY (run, key), FOREIGN KEY(run) REFERENCES runs (id) )",
    "CREATE TABLE run_systems ( run INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, completed BIGINT NOT NULL, failed BIGINT NOT NULL, reused BIGINT NOT NULL, sum BIGINT NOT NULL, PRIMARY KEY (run, number), FOREIGN KEY(run) REFERENCES runs (id) )",
    "CREATE TABLE events ( run INTEGER NOT NULL, seq BIGINT NOT NULL, kind INTEGER NOT NULL, time FLOAT NOT NULL, system INTEGER, ordinal BIGINT, repeat INTEGER, failed BOOLEAN NOT NULL, head_sum BIGINT NOT NULL, body_sum BIGINT NOT NULL, head BYTEA NOT NULL, body BYTEA, PRIMARY KEY (run, seq), FOREIGN KEY(run) REFERENCES runs (id) )",
    "CREATE TABLE examples ( run INTEGER NOT NULL, ordinal BIGINT NOT NULL, dataset TEXT NOT NULL, idx BIGINT NOT NULL, digest TEXT NOT NULL, tokens BYTEA NOT NULL, sum BIGINT NOT NULL, body BYTEA NOT NULL, PRIMARY KEY (run, ordinal), FOREIGN KEY(run) REFERENCES runs (id) )",
    "CREATE TABLE shared_examples ( run INTEGER NOT NULL, owner INTEGER NOT NULL, sum BIGINT NOT NULL, PRIMARY KEY (run), FOREIGN KEY(run) REFERENCES runs (id), FOREIGN KEY(owner) REFERENCES runs (id) )",
    'CREATE TABLE intents ( id SERIAL NOT NULL, run_id TEXT COLLATE "C" NOT NULL, kind TEXT NOT NULL, arguments BYTEA NOT NULL, time FLOAT NOT NULL, answer BYTEA, sum BIGINT NOT NULL, PRIMARY KEY (id) )',
    'CREATE TABLE daemons ( id TEXT COLLATE "C" NOT NULL, name TEXT NOT NULL, revision TEXT NOT NULL, expires FLOAT NOT NULL, PRIMARY KEY (id) )',
    'CREATE TABLE leases ( run_id TEXT COLLATE "C" NOT NULL, epoch BIGINT NOT NULL, daemon TEXT COLLATE "C" NOT NULL, expires FLOAT NOT NULL, PRIMARY KEY (run_id) )',
    'CREATE TABLE uploads ( digest TEXT COLLATE "C" NOT NULL, size BIGINT NOT NULL, used FLOAT NOT NULL, PRIMARY KEY (digest) )',
    'CREATE TABLE upload_parts ( digest TEXT COLLATE "C" NOT NULL, number INTEGER NOT NULL, body BYTEA NOT NULL, PRIMARY KEY (digest, number), FOREIGN KEY(digest) REFERENCES uploads (digest) ON DELETE CASCADE )',
    "CREATE INDEX events_but_rows ON events (run, seq) WHERE system IS NULL",
    "CREATE INDEX examples_owner ON shared_examples (owner)",
    "CREATE INDEX failed_rows ON events (failed, run, system, ordinal, repeat) WHERE failed",
    "CREATE INDEX leases_of_daemon ON leases (daemon)",
    "CREATE UNIQUE INDEX row_key ON events (run, system, ordinal, repeat) WHERE system IS NOT NULL",
    "INSERT INTO alembic_version (version_num) VALUES ('0004')",
)
DEFER_REFERENCES = (
)
PLACED_ROWS = {
    ('events', 'window'): "SELECT events.run, events.seq, events.kind, events.time, events.system, events.ordinal, events.repeat, events.failed, events.head_sum, events.body_sum, events.head, events.body FROM events WHERE events.run = %(run)s::INTEGER AND events.seq >= %(start)s::BIGINT AND events.seq < %(stop)s::BIGINT ORDER BY events.seq",
    ('examples', 'window'): "SELECT examples.run, examples.ordinal, examples.dataset, examples.idx, examples.digest, examples.tokens, examples.sum, examples.body FROM examples WHERE examples.run = %(run)s::INTEGER AND examples.ordinal >= %(start)s::BIGINT AND examples.ordinal < %(stop)s::BIGINT ORDER BY examples.ordinal",
}
LIVE_BYTES = (
    "SELECT coalesce(sum(length(runs.record)), 0) AS coalesce_1 FROM runs",
    "SELECT coalesce(sum(length(events.head) + coalesce(length(events.body), 0)), 0) AS coalesce_1 FROM events",
    "SELECT coalesce(sum(length(examples.body)), 0) AS coalesce_1 FROM examples",
)
MARK_COMMIT = "INSERT INTO daemons (id, name, revision, expires) VALUES (%(writer)s::VARCHAR COLLATE \"C\", '', %(number)s::VARCHAR, (date_part('epoch', clock_timestamp()) + 3600)) ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, expires = excluded.expires"
FIND_MARK = 'SELECT 1 FROM daemons WHERE daemons.id = %(writer)s::VARCHAR COLLATE "C" AND daemons.revision = %(number)s::VARCHAR'
ENTER_DAEMON = "INSERT INTO daemons (id, name, revision, expires) VALUES (%(daemon)s::VARCHAR COLLATE \"C\", %(name)s::VARCHAR, %(revision)s::VARCHAR, (date_part('epoch', clock_timestamp()) + %(seconds)s)) ON CONFLICT (id) DO UPDATE SET expires = (date_part('epoch', clock_timestamp()) + %(seconds)s)"
LEAVE_DAEMON = 'DELETE FROM daemons WHERE daemons.id = %(daemon)s::VARCHAR COLLATE "C"'
LIVE_DAEMONS = "SELECT daemons.name, daemons.revision FROM daemons WHERE daemons.expires > date_part('epoch', clock_timestamp()) AND daemons.name != ''"
FORGET_DAEMONS = "DELETE FROM daemons WHERE daemons.expires <= date_part('epoch', clock_timestamp())"
CLAIM_RUN = "INSERT INTO leases (run_id, epoch, daemon, expires) VALUES (%(run_id)s::VARCHAR COLLATE \"C\", nextval('lease_epochs'), %(daemon)s::VARCHAR COLLATE \"C\", (date_part('epoch', clock_timestamp()) + %(seconds)s)) ON CONFLICT (run_id) DO UPDATE SET epoch = nextval('lease_epochs'), daemon = %(daemon)s::VARCHAR COLLATE \"C\", expires = (date_part('epoch', clock_timestamp()) + %(seconds)s) WHERE leases.expires <= date_part('epoch', clock_timestamp()) OR leases.daemon = %(daemon)s::VARCHAR COLLATE \"C\" RETURNING leases.epoch"
HOLD_CLAIM = 'SELECT runs.last_seq, runs.examples FROM leases LEFT OUTER JOIN runs ON runs.run_id = leases.run_id WHERE leases.run_id = %(run_id)s::VARCHAR COLLATE "C" AND leases.epoch = %(epoch)s::BIGINT AND leases.daemon = %(daemon)s::VARCHAR COLLATE "C" FOR SHARE OF leases'
RENEW_LEASES = "UPDATE leases SET expires=(date_part('epoch', clock_timestamp()) + %(seconds)s) WHERE leases.daemon = %(daemon)s::VARCHAR COLLATE \"C\" RETURNING leases.run_id, leases.epoch"
RELEASE_RUN = 'DELETE FROM leases WHERE leases.run_id = %(run_id)s::VARCHAR COLLATE "C" AND leases.epoch = %(epoch)s::BIGINT AND leases.daemon = %(daemon)s::VARCHAR COLLATE "C"'
RELEASE_ALL = 'DELETE FROM leases WHERE leases.daemon = %(daemon)s::VARCHAR COLLATE "C"'
LEASED_RUNS = "SELECT leases.run_id FROM leases WHERE leases.expires > date_part('epoch', clock_timestamp())"
LIVE_LEASES = "SELECT count(*) AS count_1 FROM leases WHERE leases.expires > date_part('epoch', clock_timestamp())"
FREE_RUNS = "SELECT runs.run_id FROM runs WHERE NOT runs.deleted AND runs.state IN ('queued', 'running', 'waiting') AND NOT (EXISTS (SELECT leases.run_id FROM leases WHERE leases.run_id = runs.run_id AND leases.expires > date_part('epoch', clock_timestamp()))) ORDER BY runs.run_id"
INSERT_UPLOAD = "INSERT INTO uploads (digest, size, used) VALUES (%(digest)s::VARCHAR COLLATE \"C\", %(size)s::BIGINT, date_part('epoch', clock_timestamp())) ON CONFLICT DO NOTHING"
INSERT_UPLOAD_PART = 'INSERT INTO upload_parts (digest, number, body) VALUES (%(digest)s::VARCHAR COLLATE "C", %(number)s::INTEGER, %(body)s)'
USE_UPLOAD = "UPDATE uploads SET used=date_part('epoch', clock_timestamp()) WHERE uploads.digest = %(digest)s::VARCHAR COLLATE \"C\""
READ_UPLOAD_PART = 'SELECT upload_parts.body FROM upload_parts WHERE upload_parts.digest = %(digest)s::VARCHAR COLLATE "C" AND upload_parts.number = %(number)s::INTEGER'
READ_LAST_PART = 'SELECT upload_parts.body FROM upload_parts WHERE upload_parts.digest = %(digest)s::VARCHAR COLLATE "C" ORDER BY upload_parts.number DESC LIMIT 1'
UPLOADED_BYTES = "SELECT coalesce(sum(uploads.size), 0) AS coalesce_1 FROM uploads"
UNUSED_UPLOADS = "SELECT uploads.digest FROM uploads WHERE uploads.used <= date_part('epoch', clock_timestamp()) - %(seconds)s"
ALL_UPLOADS = "SELECT uploads.digest FROM uploads ORDER BY uploads.digest"
DELETE_UPLOAD = "DELETE FROM uploads WHERE uploads.digest = %(digest)s::VARCHAR COLLATE \"C\" AND uploads.used <= date_part('epoch', clock_timestamp()) - %(seconds)s"
INSERT_EVENT_IF_NEW = "INSERT INTO events (run, seq, kind, time, system, ordinal, repeat, failed, head_sum, body_sum, head, body) VALUES (%s::INTEGER, %s::BIGINT, %s::INTEGER, %s, %s::INTEGER, %s::BIGINT, %s::INTEGER, %s, %s::BIGINT, %s::BIGINT, %s, %s) ON CONFLICT (run, system, ordinal, repeat) WHERE system IS NOT NULL DO NOTHING"
INSERT_EVENT = "INSERT INTO events (run, seq, kind, time, system, ordinal, repeat, failed, head_sum, body_sum, head, body) VALUES (%s::INTEGER, %s::BIGINT, %s::INTEGER, %s, %s::INTEGER, %s::BIGINT, %s::INTEGER, %s, %s::BIGINT, %s::BIGINT, %s, %s)"
INSERT_EXAMPLE = "INSERT INTO examples (run, ordinal, dataset, idx, digest, tokens, sum, body) VALUES (%s::INTEGER, %s::BIGINT, %s::VARCHAR, %s::BIGINT, %s::VARCHAR, %s, %s::BIGINT, %s) ON CONFLICT DO NOTHING"
COPY_EVENTS = "COPY events (run, seq, kind, time, system, ordinal, repeat, failed, head_sum, body_sum, head, body) FROM STDIN (FORMAT BINARY)"
TABLE_BYTES = "SELECT pg_total_relation_size('runs') + pg_total_relation_size('run_labels') + pg_total_relation_size('run_systems') + pg_total_relation_size('events') + pg_total_relation_size('examples') + pg_total_relation_size('shared_examples')"
