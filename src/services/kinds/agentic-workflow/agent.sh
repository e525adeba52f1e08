#!/bin/sh
# Runs the agent once: repositories are cloned beside each other, then the program is given the prompt. Its lines are the log; the last one
# is its answer.
set -eu
here=/quarterdeck
mkdir -p "$here/work" "$here/answer"
cd "$here/work"
while IFS="$(printf '\t')" read -r folder branch url; do
  [ -n "$folder" ] || continue
  echo "Cloning $url at $branch"
  git clone --quiet --depth 1 --branch "$branch" -- "$url" "$folder"
done <"$here/run/repositories.tsv"
status=0
{ claude --print --verbose --output-format stream-json --dangerously-skip-permissions --strict-mcp-config \
    --mcp-config "$here/run/mcp.json" --settings "$here/run/settings.json" <"$here/run/prompt.md" ||
  echo $? >"$here/answer/status"; } | tee "$here/answer/lines"
[ ! -s "$here/answer/status" ] || status=$(cat "$here/answer/status")
tail -n 1 "$here/answer/lines" >"$here/answer/answer.json"
exit "$status"
