// SPDX-License-Identifier: Apache-2.0
// Parameters of addresses.

/** `path?name=value&...` of the parameters that are there. */
export function withParameters(path: string, parameters: Record<string, string | number | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}
