-- One file holds everything the service must not lose. Times are nanoseconds since 1970 (or seconds times 1e9 where a
-- clock counts from somewhere else); "at" columns are seconds since 1970 by the clock of this machine.
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY, count INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS calibrations (
  id INTEGER PRIMARY KEY, grp TEXT NOT NULL, entity TEXT, document TEXT NOT NULL, at REAL NOT NULL, author TEXT NOT NULL, reason TEXT NOT NULL,
  model INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS models (
  id INTEGER PRIMARY KEY, grp TEXT NOT NULL, print TEXT NOT NULL, body BLOB NOT NULL, at REAL NOT NULL, author TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS entities (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, grp TEXT NOT NULL, dates INTEGER NOT NULL, enrolled REAL NOT NULL,
  received REAL NOT NULL, saved INTEGER NOT NULL, calibration INTEGER NOT NULL, state BLOB, held BLOB, retired REAL
);
CREATE TABLE IF NOT EXISTS marks (source TEXT NOT NULL, partition INTEGER NOT NULL, next INTEGER NOT NULL, PRIMARY KEY (source, partition));
CREATE TABLE IF NOT EXISTS owners (entity TEXT PRIMARY KEY, source TEXT NOT NULL, partition INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS history (
  id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, rows INTEGER NOT NULL,
  judged INTEGER NOT NULL, unusable INTEGER NOT NULL, peak REAL, threshold REAL NOT NULL, brief BLOB NOT NULL, body BLOB NOT NULL,
  model INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS history_when ON history (entity, last, first);
CREATE TABLE IF NOT EXISTS alarms (
  id TEXT PRIMARY KEY, entity TEXT NOT NULL, grp TEXT NOT NULL, sort TEXT NOT NULL, raised INTEGER NOT NULL, onset INTEGER NOT NULL,
  cleared INTEGER, ratio REAL NOT NULL, at REAL NOT NULL, document TEXT NOT NULL, suppressed TEXT NOT NULL, pause INTEGER,
  incident TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS alarms_when ON alarms (raised);
CREATE INDEX IF NOT EXISTS alarms_whose ON alarms (entity, raised);
CREATE INDEX IF NOT EXISTS alarms_incident ON alarms (incident);
CREATE INDEX IF NOT EXISTS alarms_open ON alarms (cleared) WHERE cleared IS NULL;
CREATE TABLE IF NOT EXISTS labels (
  id INTEGER PRIMARY KEY, alarm TEXT NOT NULL, word TEXT NOT NULL, author TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS labels_of ON labels (alarm, id);
CREATE TABLE IF NOT EXISTS acknowledgements (
  id INTEGER PRIMARY KEY, alarm TEXT NOT NULL, author TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL, until REAL
);
CREATE INDEX IF NOT EXISTS acknowledgements_of ON acknowledgements (alarm, id);
CREATE TABLE IF NOT EXISTS pauses (
  id INTEGER PRIMARY KEY, pattern TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, every REAL, silent INTEGER NOT NULL,
  unlearned INTEGER NOT NULL, author TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL, ended REAL
);
CREATE TABLE IF NOT EXISTS rules (
  id INTEGER PRIMARY KEY, pattern TEXT NOT NULL, channel TEXT NOT NULL, direction TEXT NOT NULL, least REAL, least_relative REAL,
  author TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL, ended REAL
);
CREATE TABLE IF NOT EXISTS patterns (
  id INTEGER PRIMARY KEY, grp TEXT NOT NULL, document TEXT NOT NULL, words TEXT NOT NULL,
  author TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL, ended REAL
);
CREATE TABLE IF NOT EXISTS proposals (
  id INTEGER PRIMARY KEY, grp TEXT NOT NULL, entity TEXT, document TEXT NOT NULL, state TEXT NOT NULL, at REAL NOT NULL,
  author TEXT NOT NULL, reason TEXT NOT NULL, decided REAL, calibration INTEGER, before INTEGER
);
CREATE TABLE IF NOT EXISTS outbox (
  id INTEGER PRIMARY KEY, sink TEXT NOT NULL, alarm TEXT NOT NULL, event TEXT NOT NULL, body TEXT NOT NULL, due REAL NOT NULL,
  tries INTEGER NOT NULL, error TEXT NOT NULL, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS tokens (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, scopes TEXT NOT NULL, hash TEXT NOT NULL, at REAL NOT NULL, ended REAL
);
CREATE TABLE IF NOT EXISTS journal (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, author TEXT NOT NULL, what TEXT NOT NULL, reason TEXT NOT NULL
);
