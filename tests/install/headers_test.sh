#!/usr/bin/env bash
# headers_test.sh LIBRARY [SANITIZER_FLAG...]: every public header alone, all together, and their macros in a program
# that runs, in each language that we promise, by every compiler that is here. Headers are found, not listed. A sanitized
# library is linked by gcc alone: its runtime is its compiler's.
set -euo pipefail
root=$(readlink -f "$(dirname "$0")/../..")
library=$(readlink -f "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

includes=()
for folder in "$root"/include "$root"/*/include "$(dirname "$library")"/../include; do includes+=("-I$folder"); done
headers=$(cd "$root" && find include ./*/include -name '*.h' ! -name '*_here.h' | sed 's,.*/include/,,; s,^include/,,' | sort)
[ "$(wc -w <<<"$headers")" -ge 18 ] || { echo "only these headers were found: $headers"; exit 1; }

# What C++ would give other names than C if the pair were forgotten.
bare=$(cd "$root" && grep -l WEFT_API -r include ./*/include | xargs grep -L '^WEFT_END' || true)
[ -z "$bare" ] || { printf 'WEFT_BEGIN and WEFT_END are wanted around the declarations of:\n%s\n' "$bare"; exit 1; }

for header in $headers; do
    grep -qF "| \`$header\` |" "$root/docs/api.md" || { echo "docs/api.md has no line for $header"; exit 1; }
    name=$work/$(tr / _ <<<"$header").c
    printf '#include <%s>\n#include <%s>\nextern int weft_test_unit;\n' "$header" "$header" >"$name"
    printf '#include <%s>\n' "$header" >>"$work/all.c"
done
echo 'extern int weft_test_unit;' >>"$work/all.c"

# A header that does not stand alone does not in the oldest standard of a language either, nor in a later one: what a standard
# changes is seen where all are together.
# compile UNITS LANGUAGE COMPILER...: the units, and the macros' program
compile() {
    local units=$1 language=$2
    shift 2
    # shellcheck disable=SC2086
    "$@" "${includes[@]}" -pedantic -Wall -Wextra -Werror -fsyntax-only "-x$language" $units || {
        echo "the headers are not clean by: $*"
        exit 1
    }
    if [ ${#flags[@]} -gt 0 ] && [[ $1 = clang* ]]; then return; fi
    "$@" "${includes[@]}" "${flags[@]}" -pedantic -Wall -Wextra -Werror "-x$language" "$root/tests/install/macros.c" \
        -xnone "$library" "-Wl,-rpath,$(dirname "$library")" -o "$work/macros"
    "$work/macros"
}

flags=("$@")
n=0
for compiler in gcc clang; do
    command -v $compiler >/dev/null || { echo "no $compiler here: left out"; continue; }
    compile "$work/*.c" c $compiler -std=c99
    for standard in c11 c17 c2x; do compile "$work/all.c" c $compiler "-std=$standard"; done
    n=$((n + 4))
done
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || { echo "no $compiler here: left out"; continue; }
    compile "$work/*.c" c++ $compiler -std=c++17
    compile "$work/all.c" c++ $compiler -std=c++20
    n=$((n + 2))
done
echo "$(wc -w <<<"$headers") headers, alone and together, in $n languages and compilers"
