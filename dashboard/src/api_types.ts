// SPDX-License-Identifier: Apache-2.0
// What the tracker's API answers: docs/API.md in types. A test compares the two field by field
// (tests/dashboard/types.mjs), so each interface says which address answers it, or takes it as its body. With
// docs/API.md they make the OpenAPI document (dashboard/openapi.mjs).
//
// Not known is null. Lists come in pages: `more` says that there is more.

/** GET /api/v1/session */
export interface Session {
  role: 'viewer' | 'client' | 'admin';
  name: string;
  session: boolean;
  tracker: string;
}

/** Body of POST /api/v1/session */
export interface TokenBody {
  token: string;
}

/** GET /api/v1/overview */
export interface Overview {
  time: string;
  started: string;
  storing: boolean;
  trials_per_second: number;
  jobs: Record<string, number>;
  devices: Record<string, number>;
  health: Record<string, number>;
  drained: number;
  pieces_queued: number;
  pieces_running: number;
  outcomes: Record<string, number>;
  records_bytes: number;
  disk_free_bytes: number;
  running: Job[];
  minutes: { begin: string; seconds: number; trials: number }[];
}

/** The part of it that changes come with. */
export type OverviewFigures = Omit<Overview, 'running' | 'minutes'>;

/** GET /api/v1/jobs */
export interface Jobs {
  jobs: Job[];
  more: boolean;
}

/** GET /api/v1/tuners */
export interface Tuners {
  tuners: TunerLine[];
}

export interface TunerLine {
  tuner: string;
  online: boolean;
  last_seen: string;
  jobs: string[];
}

/** GET /api/v1/models */
export interface Models {
  models: ModelLine[];
}

export interface ModelLine {
  model: string;
  newest: string;
  tunes: number;
  runs: number;
}

export interface Job {
  job: string;
  model: string;
  models: string[]; // that it is about: names without .onnx or .hone
  target: string;
  group: string;
  devices: string[];
  run: Run | null; // null for a job that tunes
  state: string;
  waiting_for: string;
  notice: { url: string; delivered: boolean; given_up: boolean; attempts: number; problem: string } | null;
  activity: string;
  error: string;
  submitted_by: string;
  priority: number;
  created: string | null;
  started: string | null;
  ended: string | null;
  until: string | null;
  trials: number;
  trials_limit: number | null;
  seconds: number;
  seconds_limit: number | null;
  seconds_left: number | null;
  trials_per_second: number;
  failed: Record<string, number>;
  latency_ms_before: number | null;
  latency_ms_after: number | null;
  confirmation: Confirmation | null;
}

/** The run of the whole model at the end of a job. */
export interface Confirmation {
  device: string;
  before_ms: number | null;
  after_ms: number | null;
  ratio: number | null;
  ratio_low: number | null;
  ratio_high: number | null;
  kernels_ratio: number | null;
  kernels_disagree: boolean;
  problem: string;
  packages: ConfirmedPackage[]; // empty in lists
}

export interface FileName {
  name: string;
  digest: string;
  bytes: number;
}

/** A run of packages. The reports of its packages are there once it has succeeded, where it is asked for alone. */
export interface Run {
  kind: string;
  device: string;
  packages: RunPackage[];
  ratio: { ratio: number; low: number; high: number; pairs: number } | null;
  inputs: FileName | null;
  shapes: string[];
  seconds: number;
  threads: number;
  profile: boolean;
  keep_outputs: boolean;
  keep_values: boolean;
  allow_onnx_runtime: boolean;
  temperature_before_c: number | null;
  temperature_after_c: number | null;
  clock_before_mhz: number | null;
  clock_after_mhz: number | null;
  power_watts: number | null;
  power_source: string;
  throttled: boolean;
  environment: Environment | null;
  roofline: { peak_gflops: number; levels: { bytes: number | null; gbytes_per_second: number }[] } | null;
}

/** What a device ran with, besides its hardware. A text is empty where the device has no such thing or does not tell. */
export interface Environment {
  kernel: string;
  governor: string;
  boost: string;
  smt: string;
  huge_pages: string;
  driver: string;
  agent: string;
  device: string;
}

export interface PackageReport {
  target: string;
  threads: number;
  load_ms: number;
  first_run_ms: number;
  min_ms: number | null;
  median_ms: number | null;
  p90_ms: number | null;
  p99_ms: number | null;
  runs: number;
  peak_memory_bytes: number | null;
  kernels: RunKernel[];
  minutes: { runs: number; median_ms: number; temperature_c: number | null; clock_mhz: number | null }[];
  outputs: FileName | null;
  flops: number | null;
  bytes_touched: number | null;
  work_unknown: string;
  roofline_ms: number | null;
  roofline_share: number | null;
  passed_over: string[];
}

export interface ConfirmedPackage extends PackageReport {
  name: string;
}

export interface RunPackage extends FileName, Partial<PackageReport> {}

/** One call of a kernel. */
export interface RunKernel {
  symbol: string;
  nodes: string[];
  target: string;
  time_ms: number;
}

/** GET /api/v1/jobs/* */
export interface JobDetail extends Job {
  model_digest: string;
  threads: number;
  seed: number; // rounded: it has 64 bits, which no number here has
  seed_text: string;
  options: Record<string, string>;
  labels: Record<string, string>;
  device_kind: string;
  attempts: number;
  ended_because: string;
  latency: { at: string; seconds: number; trials: number; latency_ms: number }[];
  spent: {
    proposing_seconds: number;
    learning_seconds: number;
    building_seconds: number;
    waiting_seconds: number;
    measuring_seconds: number;
    drawn: number;
    illegal: number;
    repeated: number;
  };
  workloads: JobWorkload[];
}

export interface JobWorkload {
  digest: string;
  operator: string;
  title: string;
  count: number;
  flops: number;
  sizes: string;
  trials: number;
  default_ms: number | null;
  best_ms: number | null;
  roofline_ms: number | null;
  roofline_share: number | null;
  gflops: number | null;
  share_before: number | null;
  share_after: number | null;
  schedule: string;
  trouble: string;
}

/** Body of POST /api/v1/jobs: a JobSpec of proto/hone/v1/job.proto as JSON. */
export interface JobBody {
  name?: string;
  request_id?: string;
  devices?: string[];
  labels?: Record<string, string>;
  device_kind?: string;
  priority?: number;
  group?: string;
  notify_url?: string;
  until?: string;
  run?: {
    packages: { digest: string; bytes: number; name?: string }[];
    inputs?: { digest: string; bytes: number; name?: string };
    shapes?: string[];
    threads?: number;
    seconds?: number;
    profile?: boolean;
    keep_outputs?: boolean;
    keep_values?: boolean;
    allow_onnx_runtime?: boolean;
  };
  target?: string;
  threads?: number;
  trials?: number;
  time_budget?: string;
  seed?: number;
  options?: Record<string, string>;
  model_digest?: string;
  workloads?: {
    digest: string;
    text: string;
    count: number;
    op?: string;
    title?: string;
    flops?: number;
    hints?: string[];
    sizes?: string;
    nodes?: string[];
  }[];
  model?: {
    files: { path: string; file: { digest: string; bytes: number; name?: string } }[];
    programs: { inputs?: { input: string; dimensions: { min: number; max: number; step?: number }[] }[] }[];
    bound_texts?: Record<string, string>;
    bound_files?: Record<string, string>;
    operators?: string[];
    defaults_as_constants?: boolean;
    fallback?: boolean;
    loop_steps?: number;
  };
}

/** POST /api/v1/jobs/{job}/cancel */
export interface CancelledJob {
  job: string;
}

/** Body of POST /api/v1/files */
export interface FileOffer {
  digest: string;
  chunks: { digest: string; bytes: number }[];
}

/** POST /api/v1/files */
export interface MissingChunks {
  digest: string;
  missing: number[];
}

/** GET /api/v1/files/{digest} */
export interface FileDescription {
  digest: string;
  bytes: number;
  chunks: { digest: string; bytes: number }[];
}

/** PUT /api/v1/files/{digest}/chunks/{index} */
export interface StoredChunk {
  digest: string;
  missing: number;
}

/** PUT /api/v1/files/{digest}/contents */
export interface StoredFile {
  digest: string;
  bytes: number;
}

/** GET /api/v1/watches */
export interface Watches {
  watches: Watch[];
}

/** GET /api/v1/watches/* */
export interface Watch {
  name: string;
  package: FileName;
  at: string;
  next: string;
  created: string;
  submitted_by: string;
  slower_than: number;
  seconds: number;
  threads: number;
  shapes: string[];
  notify_url: string;
  devices: WatchedDevice[];
}

export type Verdict = 'ok' | 'slower' | 'drift' | 'changed' | 'faster' | 'did_not_run';

export interface WatchedDevice {
  device: string;
  verdict: Verdict | null; // of the newest night
  cause: string;
  median_ms: number | null; // of the newest night that was measured, as the three below
  reference_ms: number | null;
  change: number | null;
  measured: string | null;
  job: string;
  waiting_for: string;
  notice: { due: boolean; attempts: number; problem: string; told: Verdict | null } | null;
  nights: Night[];
}

export interface Night {
  due: string;
  ended: string;
  job: string;
  verdict: Verdict;
  cause: string;
  problem: string;
  median_ms: number | null;
  spread: number | null;
  reference_ms: number | null;
  change: number | null;
  target: string;
  temperature_c: number | null;
  clock_mhz: number | null;
  throttled: boolean;
  accepted: boolean;
  environment: Environment | null;
}

/** Body of POST /api/v1/watches: a FleetWatchSpec of proto/hone/v1/fleet_watch.proto as JSON. */
export interface WatchBody {
  name: string;
  run: {
    packages: { digest: string; bytes: number; name?: string }[];
    inputs?: { digest: string; bytes: number; name?: string };
    shapes?: string[];
    threads?: number;
    seconds?: number;
    allow_onnx_runtime?: boolean;
  };
  devices: string[];
  at?: string;
  slower_than?: number;
  notify_url?: string;
}

/** DELETE /api/v1/watches/{watch} */
export interface RemovedWatch {
  name: string;
}

/** GET /api/v1/devices */
export interface Devices {
  devices: Device[];
  more: boolean;
  trouble: string;
}

export interface Device {
  device: string;
  agent: string;
  agent_version: string;
  target: string;
  fingerprint: string;
  kind: string;
  model: string;
  threads: number;
  labels: Record<string, string>;
  activity: string;
  health: string;
  reason: string;
  drained: boolean;
  last_seen: string | null;
  running: { job: string; model: string; workload: string; title: string; attempt: number; since: string } | null;
  batches: number;
  candidates: number;
  losses: number;
  quarantines: number;
  quarantined_since: string | null;
  retry_at: string | null;
  governor: string;
  golden: {
    passed: boolean;
    reason: string;
    us: number;
    mad_us: number;
    baseline_us: number;
    baseline_mad_us: number;
    drifts: number;
    history_us: number[];
    temperature_c: number | null;
    throttled: boolean;
  } | null;
  sandbox: { level: string; missing: Record<string, string> };
}

/** Body of POST /api/v1/watches/{watch}/accept */
export interface AcceptBody {
  device?: string;
}

/** Body of POST /api/v1/agents/{agent}/drain */
export interface DrainBody {
  reason?: string;
}

/** POST /api/v1/agents/{agent}/drain */
export interface DrainedAgent {
  agent: string;
}

/** POST /api/v1/agents/{agent}/release */
export interface ReleasedAgent {
  agent: string;
}

/** GET /api/v1/workloads/* */
export interface Workload extends NewPoints {
  workload: string;
  operator: string;
  flops: number;
  text: string;
  best: Best[];
}

/** What /api/v1/workloads/* answers with after_row. */
export interface NewPoints {
  points: Point[];
  devices: string[];
  more: boolean;
}

export interface Point {
  row: number;
  at: string;
  kind: string;
  median_ms: number | null;
  predicted_ms: number | null;
  is_default: boolean;
  confirmed: boolean;
  verified: boolean;
  device: number; // in `devices`
  measured_by: string;
}

/** GET /api/v1/workloads/{digest}/importance */
export interface Importance {
  trials: number;
  decisions: {
    name: string;
    share: number;
    values: { value: string; trials: number; best_ms: number; median_ms: number }[];
  }[];
}

/** GET /api/v1/records/drift */
export interface Drift {
  points: {
    row: number;
    at: string;
    measured_by: string;
    golden_us: number | null;
    reference_us: number | null;
    drift: number | null;
    temperature_c: number | null;
    clock_hz: number | null;
  }[];
}

/** GET /api/v1/records/best */
export interface BestPage {
  best: Best[];
  next: string | null;
}

export interface Best {
  row: number;
  workload: string;
  operator: string;
  title: string; // of the workload, "conv2d 56x56x64 (3x3x3)"
  model: string;
  nodes: string; // of the model's file, separated by ", "
  target: string;
  device: string;
  compiler: string;
  schedule: string;
  median_ms: number;
  gflops: number | null;
  sizes: string;
  default_ms: number | null;
  confirmed: boolean;
  records: number;
  measured_at: string;
  measured_by: string;
  measurement: string;
}

/** GET /api/v1/records */
export interface Records {
  records: RecordRow[];
  more: boolean;
}

/**
 * A line of JSON of the records, and its row.
 * @open docs/RECORDS.md has all fields, of which a line leaves out those that are not known.
 */
export interface RecordRow {
  row: number;
  median_ms: number | null;
  measurement: string;
  batch: string;
  workload: { digest: string; operator: string; flops: number; text?: string; title?: string };
  target: string;
  device: string;
  compiler: string;
  schedule: string;
  decisions: string;
  is_default: boolean;
  timing?: {
    seconds: number[];
    first_interleaved: number;
    calls_per_repeat: number;
    confirmed: boolean;
    verified: boolean;
    tolerance: number;
    reference_seconds: number;
    drift: number;
    max_error: number;
    temperature_celsius?: number;
    clock_hertz?: number;
  };
  failure?: { kind: string; text: string };
  environment: string;
  measured_by: string;
  measured_at_ms: number;
  job?: string;
  model?: string;
  nodes?: string;
  seed: number; // rounded: it has 64 bits, which no number here has
  seed_text: string;
}

/** GET /api/v1/candidates/{row}
 * @open as RecordRow */
export interface Candidate extends RecordRow {
  command: string;
  kernel_command: string | null;
}

/** GET /api/v1/records/stats */
export interface RecordStats {
  records: number;
  workloads: number;
  devices: number;
  failed: Record<string, number>;
}

/** `data` of an event `change` of GET /api/v1/events. */
export interface Change {
  jobs?: { changed: Job[]; gone: string[] };
  devices?: { changed: Device[]; gone: string[] };
  overview?: OverviewFigures;
}

/** GET /healthz */
export interface Health {
  status: string;
  checks: Record<string, string>;
}
