#!/usr/bin/env bash
# `gpubench check` with the inputs of the action, which arrive as variables: no text of theirs is ever read as shell.
# Ends with the exit code of the command. Summary and remarks are the command's own.
set -euo pipefail

refuse() {
  printf '::error title=gpubench::%s\n' "$1" >&2
  exit 2
}

# A line break in an output would begin another output; the folder is part of three of them.
[[ -n $INPUT_FOLDER && $INPUT_FOLDER != *[[:cntrl:]]* ]] || refuse 'folder: expected the path of a folder'
command -v -- "$INPUT_COMMAND" >/dev/null || refuse 'command: there is no such program'
mkdir -p -- "$INPUT_FOLDER" || refuse 'folder: cannot be made'
rm -f -- "$INPUT_FOLDER"/{run.json,comparison.json,comparison.md,junit.xml}

flags=(--plain "--output=$INPUT_FOLDER/run.json")
for form in comparison.json comparison.md junit.xml; do
  flags+=("--export=$INPUT_FOLDER/$form")
done
for name in baseline device margin fail-on max-time base; do
  variable=INPUT_${name//-/_}
  variable=${variable^^}
  [[ -z ${!variable} ]] || flags+=("--$name=${!variable}")
done
read -r -a words <<<"${INPUT_WORDS//[[:space:]]/ }" # split at spaces, and nothing else is done to them

# Who cancels a job signals the first process of its step alone: passed on, so that what was measured is saved.
"$INPUT_COMMAND" check "${flags[@]}" -- ${words[@]+"${words[@]}"} &
child=$!
trap 'asked=1; kill -TERM "$child" || true' INT TERM
asked=1
while [[ -n $asked ]]; do # a signal ends the waiting, not what is waited for
  asked='' code=0
  wait "$child" || code=$?
done

output() {
  if [[ -e $INPUT_FOLDER/$2 ]]; then printf '%s=%s\n' "$1" "$INPUT_FOLDER/$2"; else printf '%s=\n' "$1"; fi
}
{
  printf 'exit-code=%s\n' "$code"
  output run run.json
  output comparison comparison.json
  output junit junit.xml
} >>"$GITHUB_OUTPUT"
exit "$code"
