-- Arguments and results are left out on purpose: they may hold secrets.
CREATE TABLE calls (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    call_id        TEXT    NOT NULL,
    parent_id      TEXT,
    tool_name      TEXT    NOT NULL,
    version        TEXT    NOT NULL,
    started_at     REAL    NOT NULL,
    duration_ms    REAL    NOT NULL,
    status         TEXT    NOT NULL,
    error          TEXT,
    argument_bytes INTEGER NOT NULL,
    result_bytes   INTEGER NOT NULL
);

CREATE INDEX calls_by_tool ON calls (tool_name, id);
CREATE INDEX calls_failed ON calls (id) WHERE status <> 'ok';
CREATE INDEX calls_by_time ON calls (started_at);
