#!/bin/sh
# Runs the agent once: among the repositories, which lie beside each other, the program is given the prompt. Its lines are the log; the last
# one is its answer.
set -eu
given=$(cd "${0%/*}" && pwd)
# The one folder that may be written whoever runs here.
own=$(cd "$given/../answer" && pwd)
mkdir -p "$own/work" "$own/home"
export HOME="$own/home"
# The program takes no permission to be skipped from root elsewhere.
export IS_SANDBOX=1
# It asks the model, and nobody else unasked.
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_TELEMETRY=1
cd "$own/work"

# What was checked out is files only: a commit of them shows what the agent changes. They may belong to somebody else.
commit() {
  git -C "$1" init --quiet
  git -C "$1" add --all
  git -C "$1" -c user.name=quarterdeck -c user.email=quarterdeck@localhost commit --quiet --allow-empty --message "$2 of $3"
}
if command -v git >/dev/null; then
  git config --global --add safe.directory '*'
  while IFS="$(printf '\t')" read -r folder branch url; do
    [ -z "$folder" ] || commit "$folder" "$branch" "$url"
  done <"$given/repositories.tsv"
fi

command -v claude >/dev/null || {
  echo 'There is no program claude: install it (npm install --global @anthropic-ai/claude-code) in the image of the agent, or on the machine of a host cluster, where every account finds it (/usr/local/bin).' >&2
  exit 127
}
{ claude --print --verbose --output-format stream-json --dangerously-skip-permissions --strict-mcp-config \
    --mcp-config "$given/mcp.json" --settings "$given/settings.json" <"$given/prompt.md" ||
  echo $? >"$own/status"; } | tee "$own/lines"
tail -n 1 "$own/lines" >"$own/answer.json"
[ ! -s "$own/status" ] || exit "$(cat "$own/status")"
