#!/bin/sh
# Runs the agent once with the prompt, in the folder that contains the repositories. The program's lines are the log; the last one is its
# answer.
set -eu
given=$(cd "${0%/*}" && pwd)
# Only this folder is writable for every user.
own=$(cd "$given/../answer" && pwd)
mkdir -p "$own/work" "$own/home"
export HOME="$own/home"
# Without this variable the program refuses to skip permissions as root.
export IS_SANDBOX=1
# No requests besides those to the model.
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_TELEMETRY=1
cd "$own/work"

# Checkouts have no history: a first commit makes the agent's changes visible. Their files may belong to another user (safe.directory).
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
