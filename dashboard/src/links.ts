// SPDX-License-Identifier: Apache-2.0
// Addresses of views.
import { withParameters } from './parameters';

export const addressOf = {
  model: (model: string) => `/models/${encodeURIComponent(model)}`,
  job: (job: string) => `/jobs/${encodeURIComponent(job)}`,
  workload: (digest: string, parameters: Record<string, string | undefined> = {}) =>
    withParameters(`/workloads/${encodeURIComponent(digest)}`, parameters),
  candidate: (row: number) => `/candidates/${row}`,
  compare: (a: number | string, b: number | string) => withParameters('/compare', { a, b }),
  watch: (name: string) => `/watches/${encodeURIComponent(name)}`,
  device: (name: string) => withParameters('/device', { name }),
  records: (parameters: Record<string, string | undefined>) => withParameters('/records', parameters),
};
