#!/bin/sh
# planted_test.sh FOLDER PROGRAM...: each is a test of this folder with a fault planted in the library, and has to fail.
# EMULATOR is what runs programs for another processor.
folder=$1
shift
TMPDIR=$(mktemp -d) # a test that fails leaves its files
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
export TEST_CASES=100 # however few of their cases the tests themselves are given
n_found=0 n_missed=0
for program; do
    words=$($EMULATOR "$folder/$program" 2>&1)
    status=$?
    if [ "$status" = 1 ]; then
        n_found=$((n_found + 1))
        echo "$program: found: $(printf '%s\n' "$words" | grep -m 1 -E '^[^ ].*: [a-z].*' | cut -c 1-160)"
    else
        n_missed=$((n_missed + 1))
        echo "$program: not found: exit status $status: $(printf '%s\n' "$words" | tail -n 1)" >&2
    fi
done
echo "$n_found passed, $n_missed failed"
[ "$n_missed" = 0 ] && [ "$n_found" -gt 0 ]
