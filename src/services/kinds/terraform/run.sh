#!/bin/sh
# Runs one action of Terraform or OpenTofu in a copy of the module. The commands stand in files beside this one, one argument per
# line, so that the shell never interprets text of a user. The only argument is the path of the file for the answer.
set -u
umask 077
run=$(cd "$(dirname "$0")" && pwd) || exit 1
answer=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/terraform.XXXXXX") || exit 1
child=
stopped=
trap 'rm -rf "$work"' EXIT
# On a signal Terraform finishes its current operation, writes the state and releases the lock.
trap 'stopped=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT HUP

fail() {
  echo "$1" >&2
  exit "${2:-1}"
}

# The image's own folder may not be writable for this user.
cp -R "$run/../source/." "$work/source" || exit 1
module=$work/source/$(cat "$run/module")
[ -d "$module" ] || fail "root_path names no folder of the repository: $(cat "$run/module")"
[ ! -s "$run/backend.tf.json" ] || cp "$run/backend.tf.json" "$module/quarterdeck_backend_override.tf.json" || exit 1

export HOME="$work" TF_DATA_DIR="$work/data"
[ -n "${TF_CLI_CONFIG_FILE:-}" ] || export TF_CLI_CONFIG_FILE="$run/terraform.rc"
if [ -d "$run/../cache" ] && [ -w "$run/../cache" ]; then TF_PLUGIN_CACHE_DIR=$(cd "$run/../cache" && pwd); export TF_PLUGIN_CACHE_DIR; fi

# Paths of the list are relative to the module's folder or to the repository's root.
: >"$work/var-files"
while IFS= read -r given || [ -n "$given" ]; do
  found=
  for candidate in "$module/$given" "$work/source/$given"; do
    [ ! -f "$candidate" ] || { found=$candidate; break; }
  done
  [ -n "$found" ] || fail "tf_var_file_paths names no file of the repository: $given"
  printf '%s\n' "$found" >>"$work/var-files"
done <"$run/var-files"
for given in "$run/variables.tfvars.json" "$run/structured.tfvars"; do
  [ ! -s "$given" ] || printf '%s\n' "$given" >>"$work/var-files"
done

# Chooses the first program that is present and, if the module has a version constraint, fulfills it.
program=
while IFS= read -r candidate || [ -n "$candidate" ]; do
  command -v "$candidate" >/dev/null 2>&1 || continue
  program=$candidate
  [ -f "$run/choose" ] || break
  case $("$program" -chdir="$module" get -no-color 2>&1 </dev/null) in
    *"Unsupported "*"Core version"*) continue ;;
  esac
  break
done <"$run/programs"
[ -n "$program" ] || fail "The program is not there: $(cat "$run/programs")" 127

# Since 1.8 OpenTofu compares the variables of an apply with those of the plan. Other programs refuse variables at the apply.
compares=
[ "${program##*/}" != tofu ] || case $("$program" version </dev/null) in
  *"OpenTofu v1."[67].*) ;;
  *) compares=1 ;;
esac

end() {
  child=$!
  wait "$child"
  status=$?
  # A signal to this script ends `wait`, not the child.
  while kill -0 "$child" 2>/dev/null; do
    wait "$child"
    status=$?
  done
  child=
}

for file in "$run"/commands/*; do
  name=${file##*/}
  name=${name#*-}
  [ -z "$stopped" ] || exit 130
  set --
  while IFS= read -r argument || [ -n "$argument" ]; do set -- "$@" "$argument"; done <"$file"
  case $name in
    plan | destroy | locked) while IFS= read -r given; do set -- "$@" "-var-file=$given"; done <"$work/var-files" ;;
    apply)
      if [ -n "$compares" ]; then
        while IFS= read -r given; do set -- "$@" "$given"; done <"$run/plan-variables"
        while IFS= read -r given; do set -- "$@" "-var-file=$given"; done <"$work/var-files"
      fi
      set -- "$@" "$(cat "$run/plan-file")"
      ;;
  esac
  echo "== ${program##*/} $name"
  case $name in
    # Not logged: plan and state may contain sensitive values.
    show | state) "$program" -chdir="$module" "$@" </dev/null >"$work/$name.json" & end ;;
    # Terraform tells the id of a lock only in the error of a refused command.
    locked)
      "$program" -chdir="$module" "$@" </dev/null >"$work/locked" 2>&1 & end
      # The http backend's "Lock Info" describes the refused request; the held lock stands in its message.
      lock=$(sed -n -e 's/^\(.*[^A-Za-z]\)\{0,1\}ID=\([^ ]*\).*/\2/p' -e 's/^[^A-Za-z]*ID: *\([^ ]*\).*/\1/p' "$work/locked" | head -n 1)
      if [ -z "$lock" ]; then
        [ "$status" -eq 0 ] || cat "$work/locked"
        [ "$status" -ne 0 ] || echo 'The state is not locked.'
      else
        echo "Releasing the lock $lock."
        "$program" -chdir="$module" force-unlock -no-color -force -- "$lock" </dev/null & end
      fi
      ;;
    # Switches the backend: the previous configuration stays in TF_DATA_DIR, from which init migrates.
    switch)
      rm -f "$module/quarterdeck_backend_override.tf.json"
      [ ! -s "$run/next-backend.tf.json" ] || cp "$run/next-backend.tf.json" "$module/quarterdeck_backend_override.tf.json"
      status=$?
      ;;
    *) "$program" -chdir="$module" "$@" </dev/null & end ;;
  esac
  [ "$status" -eq 0 ] || fail "$name ended with status $status." "$status"
done

{
  printf '{"format":1'
  for name in show state; do
    [ ! -s "$work/$name.json" ] || { printf ',"%s":' "$name" && cat "$work/$name.json"; }
  done
  printf '}\n'
} >"$work/answer" || exit 1
# A larger answer would not be read at all: then only the end of the run is known.
[ "$(wc -c <"$work/answer")" -le 1048576 ] || printf '{"format":1,"too_large":true}\n' >"$work/answer"
mkdir -p "$(dirname "$answer")" && cat "$work/answer" >"$answer" || fail "What is answered cannot be written to $answer."
