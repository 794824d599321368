# The arguments are JSON in SKILLZ_ARGUMENTS; whatever is printed is the result.
set -euo pipefail
text=$(sed -n 's/.*"text" *: *"\([^"]*\)".*/\1/p' <<<"$SKILLZ_ARGUMENTS")
printf '{"words": %d}\n' "$(wc -w <<<"$text")"
