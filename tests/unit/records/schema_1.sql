CREATE TABLE workloads (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE CHECK (digest <> ''),
  operator TEXT NOT NULL,
  flops REAL NOT NULL CHECK (flops >= 0),
  text TEXT NOT NULL CHECK (text <> '')
) STRICT;
CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  measurement TEXT NOT NULL UNIQUE CHECK (measurement <> ''),
  batch TEXT NOT NULL,
  workload_id INTEGER NOT NULL REFERENCES workloads (id),
  target TEXT NOT NULL CHECK (target <> ''),
  device TEXT NOT NULL CHECK (device <> ''),
  compiler TEXT NOT NULL CHECK (compiler <> ''),
  schedule TEXT NOT NULL,
  decisions TEXT NOT NULL,
  seconds TEXT CHECK (seconds GLOB '[[][0-9]*]'),
  median_seconds REAL CHECK (median_seconds > 0),
  confirmed INTEGER NOT NULL DEFAULT 0 CHECK (confirmed IN (0, 1)),
  verified INTEGER NOT NULL DEFAULT 0 CHECK (verified IN (0, 1)),
  tolerance REAL CHECK (tolerance >= 0),
  reference_seconds REAL CHECK (reference_seconds > 0),
  failure TEXT CHECK (failure IN ('schedule_illegal', 'compile_error', 'compile_timeout', 'crashed', 'run_timeout',
                                  'wrong_output', 'out_of_bounds_write', 'lost_device')),
  failure_text TEXT,
  temperature_celsius REAL,
  clock_hertz REAL CHECK (clock_hertz > 0),
  measured_by TEXT NOT NULL,
  measured_at_ms INTEGER NOT NULL CHECK (measured_at_ms >= 0),
  seed INTEGER NOT NULL,
  CHECK ((failure IS NULL) = (seconds IS NOT NULL)),
  CHECK ((seconds IS NULL) = (median_seconds IS NULL)),
  CHECK ((failure IS NULL) = (failure_text IS NULL)),
  CHECK (failure IS NULL OR (confirmed = 0 AND verified = 0))
) STRICT;
CREATE INDEX records_by_key ON records (workload_id, target, device, compiler);
CREATE INDEX records_by_failure ON records (failure) WHERE failure IS NOT NULL;
CREATE INDEX records_by_device ON records (device);
CREATE VIEW best AS
SELECT w.digest AS workload, w.operator, b.target, b.device, b.compiler, r.schedule, r.decisions,
  b.median_seconds * 1e3 AS median_ms, w.flops / b.median_seconds * 1e-9 AS gflops, r.confirmed, b.records,
  datetime(r.measured_at_ms / 1000, 'unixepoch') AS measured_at, b.record_id
FROM (
WITH judged AS (
  SELECT r.id, r.workload_id, r.target, r.device, r.compiler, r.median_seconds, r.confirmed, r.measured_at_ms,
    r.verified,
    row_number() OVER (
      PARTITION BY r.workload_id, r.target, r.device, r.compiler, r.schedule
      ORDER BY r.verified DESC, r.confirmed DESC, r.measured_at_ms DESC, r.id DESC) AS nth,
    max(CASE WHEN r.failure IN ('wrong_output', 'out_of_bounds_write', 'crashed') THEN r.measured_at_ms END) OVER (
      PARTITION BY r.workload_id, r.target, r.device, r.compiler, r.schedule) AS last_wrong_ms,
    count(*) OVER (PARTITION BY r.workload_id, r.target, r.device, r.compiler) AS records
  FROM records r
  WHERE TRUE
), ranked AS (
  SELECT j.*,
    row_number() OVER (
      PARTITION BY j.workload_id, j.target, j.device, j.compiler
      ORDER BY j.confirmed DESC, j.median_seconds, j.id) AS place
  FROM judged j
  WHERE j.nth = 1 AND j.verified AND (j.last_wrong_ms IS NULL OR j.last_wrong_ms < j.measured_at_ms)
)
SELECT id AS record_id, workload_id, target, device, compiler, median_seconds, records FROM ranked WHERE place = 1
) b
JOIN records r ON r.id = b.record_id
JOIN workloads w ON w.id = b.workload_id
