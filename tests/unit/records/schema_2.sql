CREATE TABLE workloads (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE CHECK (digest <> ''),
  operator TEXT NOT NULL,
  flops REAL NOT NULL CHECK (flops >= 0),
  text TEXT NOT NULL CHECK (text <> '')
) STRICT;
CREATE TABLE texts (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE measurements (
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES workloads (id),
  measurement TEXT CHECK (measurement <> '') NOT NULL,
  batch TEXT NOT NULL,
  target_id INTEGER NOT NULL REFERENCES texts (id),
  device_id INTEGER NOT NULL REFERENCES texts (id),
  compiler_id INTEGER NOT NULL REFERENCES texts (id),
  schedule TEXT NOT NULL,
  decisions TEXT NOT NULL,
  is_default INTEGER CHECK (is_default IN (0, 1)) NOT NULL,
  seconds TEXT CHECK (seconds GLOB '[[][0-9]*]'),
  first_interleaved INTEGER CHECK (first_interleaved >= 0),
  calls_per_repeat INTEGER CHECK (calls_per_repeat >= 0),
  confirmed INTEGER CHECK (confirmed IN (0, 1)),
  verified INTEGER CHECK (verified IN (0, 1)),
  tolerance REAL CHECK (tolerance >= 0),
  reference_seconds REAL CHECK (reference_seconds > 0),
  drift REAL CHECK (drift >= 0),
  temperature_celsius REAL,
  clock_hertz REAL CHECK (clock_hertz > 0),
  failure TEXT CHECK (failure IN ('schedule_illegal', 'compile_error', 'compile_timeout', 'crashed', 'run_timeout', 'wrong_output', 'out_of_bounds_write', 'lost_device')),
  failure_text TEXT,
  environment_id INTEGER NOT NULL REFERENCES texts (id),
  measured_by_id INTEGER NOT NULL REFERENCES texts (id),
  measured_at_ms INTEGER CHECK (measured_at_ms >= 0) NOT NULL,
  seed INTEGER NOT NULL,
  median_seconds REAL CHECK (median_seconds > 0),
  CHECK ((failure IS NULL) = (seconds IS NOT NULL)),
  CHECK ((seconds IS NULL) = (median_seconds IS NULL)),
  CHECK ((failure IS NULL) = (failure_text IS NULL))
) STRICT;
CREATE UNIQUE INDEX measurements_once ON measurements (measurement);
CREATE INDEX measurements_by_key ON measurements (workload_id, target_id, device_id, compiler_id);
CREATE INDEX measurements_deciding ON measurements (workload_id, target_id, device_id, compiler_id) WHERE (confirmed = 1 OR failure IN ('crashed', 'wrong_output', 'out_of_bounds_write'));
CREATE INDEX measurements_by_failure ON measurements (failure) WHERE failure IS NOT NULL;
CREATE INDEX measurements_by_device ON measurements (device_id);
CREATE VIEW records AS
SELECT m.id, m.workload_id,
  m.measurement AS measurement,
  m.batch AS batch,
  w.digest AS digest,
  w.operator AS operator,
  w.flops AS flops,
  target.text AS target,
  device.text AS device,
  compiler.text AS compiler,
  m.schedule AS schedule,
  m.decisions AS decisions,
  m.is_default AS is_default,
  m.seconds AS seconds,
  m.first_interleaved AS first_interleaved,
  m.calls_per_repeat AS calls_per_repeat,
  m.confirmed AS confirmed,
  m.verified AS verified,
  m.tolerance AS tolerance,
  m.reference_seconds AS reference_seconds,
  m.drift AS drift,
  m.temperature_celsius AS temperature_celsius,
  m.clock_hertz AS clock_hertz,
  m.failure AS failure,
  m.failure_text AS failure_text,
  environment.text AS environment,
  measured_by.text AS measured_by,
  m.measured_at_ms AS measured_at_ms,
  m.seed AS seed,
  m.median_seconds
FROM measurements m LEFT JOIN workloads w ON w.id = m.workload_id
  LEFT JOIN texts target ON target.id = m.target_id
  LEFT JOIN texts device ON device.id = m.device_id
  LEFT JOIN texts compiler ON compiler.id = m.compiler_id
  LEFT JOIN texts environment ON environment.id = m.environment_id
  LEFT JOIN texts measured_by ON measured_by.id = m.measured_by_id
