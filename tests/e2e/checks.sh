# SPDX-License-Identifier: Apache-2.0
# Sourced by the end-to-end tests: the programs under test, a scratch folder, and checks that count their failures.
# Usage of a test: NAME BIN_FOLDER, where the programs are. Ends with exit code 1 when a check failed.
set -euo pipefail
bin=$(cd "${1:?usage: $0 BIN_FOLDER}" && pwd)
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
expected_outputs=$source_root/tests/models/expected_outputs.txt
scratch=$(mktemp -d)
export XDG_DATA_HOME=$scratch/data  # no test sees or touches a person's records
failures=0
checks=0

# Ends what the test started, by its ids, and removes what it wrote.
clean_up() {
  local pids
  mapfile -t pids < <(jobs -p)
  [[ ${#pids[@]} -eq 0 ]] || kill -9 "${pids[@]}" 2>/dev/null || true
  chmod -R u+w "$scratch" 2>/dev/null || true
  rm -rf "$scratch"
}
trap clean_up EXIT

# failed TEXT: counts a failed check and says what it was.
failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# succeeds COMMAND...: must end with 0. Its standard output is in $scratch/out, its messages are in $scratch/err.
succeeds() {
  local code=0
  checks=$((checks + 1))
  "$@" > "$scratch/out" 2> "$scratch/err" || code=$?
  [[ $code -eq 0 ]] || failed "$* ended with $code: $(tail -3 "$scratch/err")"
}

# fails CODE TEXT COMMAND...: must end with that exit code, TEXT (a regular expression) in its messages, and nothing on
# standard output.
fails() {
  local wanted=$1 text=$2 code=0
  shift 2
  checks=$((checks + 1))
  "$@" > "$scratch/out" 2> "$scratch/err" || code=$?
  if [[ $code -ne $wanted ]]; then
    failed "$* ended with $code, should be $wanted: $(tail -3 "$scratch/err")"
  elif ! grep -qiE -- "$text" "$scratch/err"; then
    failed "$* does not say '$text': $(tail -3 "$scratch/err")"
  elif [[ -s $scratch/out ]]; then
    failed "$* failed and still printed: $(head -3 "$scratch/out")"
  fi
}

# holds TEXT JQ_FILTER FILE: the filter must be true of the JSON document.
holds() {
  checks=$((checks + 1))
  jq -e "$2" "$3" > /dev/null 2>&1 || failed "$1: not so in $(head -c 600 "$3")"
}

# finish: the test's last line.
finish() {
  echo "$checks checks, $failures failed"
  [[ $failures -eq 0 ]]
}
