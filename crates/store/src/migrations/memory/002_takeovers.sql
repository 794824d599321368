-- Files of older versions whose content has been taken over; each is taken over once.
CREATE TABLE takeovers (
    path     TEXT NOT NULL PRIMARY KEY,
    taken_at REAL NOT NULL,
    imported INTEGER NOT NULL,
    skipped  INTEGER NOT NULL
);
