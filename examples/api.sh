# Shell helpers of the pages in docs/. Read them into a shell at the root of the clone, while the service runs:
#
#   . examples/api.sh
#
# Another address, another token: set QD or QUARTERDECK_TOKEN before.
QD=${QD:-http://127.0.0.1:8080}
QUARTERDECK_TOKEN=${QUARTERDECK_TOKEN:-$(cat "${QUARTERDECK_DATA_DIR:-.quarterdeck}/admin-token")}

# api METHOD PATH [BODY]: sends one request and prints the answer. It fails where the answer is an error.
api() {
  if [ -n "${3-}" ]; then
    curl -sS --fail-with-body -X "$1" -H "Authorization: Token $QUARTERDECK_TOKEN" "$QD$2" -H 'Content-Type: application/json' -d "$3"
  else
    curl -sS --fail-with-body -X "$1" -H "Authorization: Token $QUARTERDECK_TOKEN" "$QD$2"
  fi && echo
}

# field NAME: reads an answer and prints the first text of that name, such as an id.
field() { grep -o "\"$1\":\"[^\"]*\"" | sed -n '1s/^"[^"]*":"\(.*\)"$/\1/p'; }

# Your first organization, and the branch of this clone.
ORGANIZATION=$(api GET /organization | field id)
BRANCH=$(git branch --show-current)
BRANCH=${BRANCH:-HEAD}
