#!/bin/sh
# Runs the agent once: repositories are cloned beside each other, then the program is given the prompt. Its lines are the log; the last one
# is its answer.
set -eu
given=${0%/*}
# The one folder that may be written whoever runs here.
own=$(cd "$given/../answer" && pwd)
mkdir -p "$own/work" "$own/home"
export HOME="$own/home"
# The program takes no permission to be skipped from root elsewhere.
export IS_SANDBOX=1
given=$(cd "$given" && pwd)
cd "$own/work"
while IFS="$(printf '\t')" read -r folder branch url; do
  [ -n "$folder" ] || continue
  echo "Cloning $url at $branch"
  git clone --quiet --depth 1 --branch "$branch" -- "$url" "$folder"
done <"$given/repositories.tsv"
{ claude --print --verbose --output-format stream-json --dangerously-skip-permissions --strict-mcp-config \
    --mcp-config "$given/mcp.json" --settings "$given/settings.json" <"$given/prompt.md" ||
  echo $? >"$own/status"; } | tee "$own/lines"
tail -n 1 "$own/lines" >"$own/answer.json"
[ ! -s "$own/status" ] || exit "$(cat "$own/status")"
