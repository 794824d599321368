-- Small columns come first: a scan for keys, expiry or sizes then never touches the pages that long values overflow to.
CREATE TABLE memory (
    namespace  TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    expires_at REAL,
    bytes      INTEGER NOT NULL,
    updated_at REAL    NOT NULL,
    value      TEXT    NOT NULL,
    PRIMARY KEY (namespace, key)
);

CREATE INDEX memory_expiry ON memory (expires_at) WHERE expires_at IS NOT NULL;
