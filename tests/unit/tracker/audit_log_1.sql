-- An audit log from before versions.
CREATE TABLE acts(number INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, role TEXT NOT NULL,
  name TEXT NOT NULL, peer TEXT NOT NULL, method TEXT NOT NULL, object TEXT NOT NULL, result TEXT NOT NULL) STRICT;
INSERT INTO acts(at_ms, role, name, peer, method, object, result)
  VALUES(1700000000000, 'admin', 'ann', 'ipv4:1', 'JobService/Cancel', 'j1', 'ok');
