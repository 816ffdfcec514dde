#!/usr/bin/env bash
# pages_test.sh BUILD: what programs say of themselves. --help is at most 40 lines of 80 columns, and --help=all has every option;
# manual pages are clean to groff; completion is that of the options, by the shells that are here.
set -euo pipefail
build=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { printf 'FAIL: %s\n' "$*"; exit 1; }
share=$build/share

options() { grep -o '^  --[a-z0-9-]*' "$1" | sort; }
for command in gpt mnist charlm seq2seq word2vec weft "weft info" "weft run" "weft serve" "weft ckpt" "weft tokens" "weft data" "weft postmortem" "weft top" "weft doctor" "weft trace" "weft report" "weft diff" "weft tune"; do
    read -ra words <<<"$command"
    program=$build/bin/${words[0]}
    "$program" "${words[@]:1}" --help >"$work/help" || die "$command --help ends with $?"
    "$program" "${words[@]:1}" -h | cmp - "$work/help" || die "$command -h says something else than --help"
    "$program" "${words[@]:1}" --help=all >"$work/all" || die "$command --help=all ends with $?"
    [ "$(wc -l <"$work/help")" -le 40 ] || die "$command --help has $(wc -l <"$work/help") lines"
    for said in help all; do
        [ "$(wc -L <"$work/$said")" -le 80 ] || { awk 'length > 80' "$work/$said"; die "$command --help is wider than 80 columns"; }
    done
    page=$share/man/man1/${command// /-}.1
    [ -s "$page" ] || die "$command has no manual page"
    [ "$command" = weft ] && continue
    [ "$(options "$work/all" | wc -l)" -ge 2 ] || die "$command --help=all has no options"
    [ -z "$(comm -23 <(options "$work/help") <(options "$work/all"))" ] || die "$command --help has what --help=all has not"
    for option in $(options "$work/all"); do
        grep -qF "fB${option//-/\\-}\\fR" "$page" || die "the page of $command lacks $option"
        for shell in "bash-completion/completions/" "zsh/site-functions/_"; do
            grep -qe "$option[^a-z-]" "$share/$shell${words[0]}" || die "$shell of $command lacks $option"
        done
    done
done
for how in "" help -h; do "$build/bin/weft" $how | cmp - <("$build/bin/weft" --help) || die "weft $how"; done
"$build/bin/gpt" help | cmp - <("$build/bin/gpt" --help) || die "gpt help"
if "$build/bin/weft" --help=al 2>"$work/said"; then die "weft --help=al is taken"; fi
grep -q 'all, man, bash, zsh' "$work/said" || die "weft --help=al: $(cat "$work/said")"

if command -v groff >/dev/null && groff -man -Tutf8 </dev/null >/dev/null 2>&1; then
    for page in "$share"/man/man1/*.1; do
        warned=$(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null)
        [ -z "$warned" ] || die "groff of $(basename "$page"): $warned"
    done
else
    echo "not tried: groff is not installed"
fi

cat >"$work/complete" <<'COMPLETE'
for file in "$share"/bash-completion/completions/*; do . "$file"; done
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    "_weft_complete_$1"
    echo "${COMPREPLY[*]}"
}
expect() {
    local wanted=$1
    shift
    [ "$(complete_words "$@")" = "$wanted" ] || { echo "FAIL: bash completes \"$*\" by \"$(complete_words "$@")\", not \"$wanted\""; exit 1; }
}
expect train gpt t
expect "--zero" gpt train --ze
expect "0 1 2 3" gpt train --zero ""
expect "f32 f64 f16" gpt train --dtype = f
expect "" gpt train --layers ""
expect "info run serve ckpt tokens data postmortem top doctor calibrate machine trace report diff tune help" weft ""
expect "import" weft ckpt im
expect "auto safetensors hdf5" weft ckpt import a b --format ""
expect "draw" mnist dr
COMPLETE
share=$share bash "$work/complete" || exit 1
if command -v zsh >/dev/null; then
    for file in "$share"/zsh/site-functions/_*; do zsh -n "$file" || die "zsh does not take $(basename "$file")"; done
    # in a terminal of its own: what <tab> makes of a word that can be one thing only
    cat >"$work/zsh" <<ZSH
zmodload zsh/zpty
zpty -b it zsh -f -i
zpty -w it "PROMPT=; fpath=($share/zsh/site-functions \$fpath); autoload -U compinit; compinit -u -D; PATH=$build/bin:\$PATH; echo re''ady"
zpty -r it text '*ready*'
zpty -w -n it \$'echo done; weft ckpt imp\t --js\t --format safe\t\n'
zpty -r it text '*--format safetensors*' && print found
ZSH
    [[ $(timeout 60 zsh -f "$work/zsh" 2>&1 || true) = *found* ]] || die "zsh does not complete weft ckpt import --json --format safetensors"
else
    echo "not tried: zsh is not installed"
fi
echo "$(ls "$share/man/man1" | wc -l) pages"
