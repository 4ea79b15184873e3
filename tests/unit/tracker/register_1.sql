-- A register from before versions.
CREATE TABLE certificates(serial TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL,
  issued_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, vouched_by TEXT NOT NULL, revoked INTEGER NOT NULL) STRICT;
CREATE INDEX certificates_by_name ON certificates(name);
CREATE TABLE revoked_names(name TEXT PRIMARY KEY, at_ms INTEGER NOT NULL) STRICT;
CREATE TABLE tokens(hash TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL,
  uses_left INTEGER NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, created_by TEXT NOT NULL,
  revoked INTEGER NOT NULL) STRICT;
INSERT INTO certificates VALUES('0A', 'agent', 'board', 1700000000000, 1900000000000, 'token 1 of ann', 0);
INSERT INTO revoked_names VALUES('thief', 1700000000000);
