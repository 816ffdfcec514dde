#!/usr/bin/env bash
# run_test.sh BUILD: `./run` answers questions about itself shortly, by its own words; and what the demo builds has no tests
# in it, by the build rules of the folder BUILD.
set -euo pipefail
root=$(readlink -f "$(dirname "$0")/../..")
build=$(readlink -f "$1")
die() { printf 'FAIL: %s\n' "$*"; exit 1; }

for question in "" help -h --help "test --help" "test -h" "test help"; do
    # shellcheck disable=SC2086
    said=$("$root/run" $question) || die "./run $question ends with $?"
    [ "$(wc -l <<<"$said")" -le 25 ] || die "./run $question says $(wc -l <<<"$said") lines"
    grep -q '^ *./run test' <<<"$said" || die "./run $question says nothing of ./run test: $said"
done
if said=$("$root/run" test --hlep 2>&1); then die "./run test --hlep is taken"; fi
grep -q 'not "--hlep"' <<<"$said" || die "./run test --hlep: $said"

grep -q 'build --target weft_programs' "$root/run" || die "the demo builds something else than weft_programs"
command -v ninja >/dev/null && [ -e "$build/build.ninja" ] || { echo "skipped: $build was not configured for ninja"; exit 77; }
commands=$(ninja -C "$build" -t commands weft_programs)
for wanted in bin/gpt bin/mnist bin/charlm bin/seq2seq bin/word2vec bin/weft share/weft/corpus.txt; do
    grep -q "[ =/]$wanted\( \|$\)" <<<"$commands" || die "weft_programs lacks $wanted"
done
if grep -o ' -o tests/[^ ]*' <<<"$commands"; then die "weft_programs compiles these tests"; fi
echo "weft_programs: $(wc -l <<<"$commands") commands, no tests among them"
