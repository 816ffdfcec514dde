#!/usr/bin/env bash
# The tests of the device cuda on a machine that has a GPU and its driver, and perhaps nothing else: no compiler, no MPI, no BLAS.
#
#   tests/device/run.sh pack DIR [BUILD]    here: the programs and tests of a build (build), and every library that they load, as
#                                           DIR/packed.tgz and DIR/run.sh
#   DIR/run.sh run                          there: all of them, in nine minutes at most; device.log has date, driver and commit
#   DIR/run.sh bench                        there: steps of GPT-2 beside PyTorch's, where its python3 has that, and ops beside a
#                                           copy (tests/bench/device.py), in nine minutes at most; bench.log; 77: no GPU, or no python3.
#                                           ROWS="gpt2_4x1024 ...": these alone
#
# Logs are written into the folder that OUT names, else beside the script. Built on the older system of the two: its C library is the
# one that is not brought along. A test without a device says "skipped" with the reason, and the last line counts what passed,
# failed and was skipped. DEVICE_LIBRARIES names folders whose libraries come before all others.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tests=(device ops windows products attend narrow convolve keep)

die() { echo "device: $*" >&2; exit 1; }

# Not the C library's and the compiler's, which belong to the system, nor the driver's, which belongs to the GPU.
libraries_of() {
    ldd "$@" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
        grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|libgcc_s|libstdc\+\+|ld-linux[^/]*|libcuda)\.so'
}

# The library that checkpoints are written with, which is loaded by its name alone; nothing: the build has none.
hdf5_of() {
    local build=$1 name found
    name=$(grep -aoE 'libhdf5[a-z_]*\.so\.[0-9]+' "$build/lib/libweft.so.0" | sed -n 1p) || return 0
    found=$(sed -n 's/^HDF5_LIBRARY:[A-Z]*=//p' "$build/CMakeCache.txt")
    found=$(dirname "$found")/$name
    [ -e "$found" ] || die "$found is not there, which checkpoints are written with"
    echo "$found"
}

pack() {
    local to=$1 build=${2:-build} top part hdf5
    top=$(cd "$here/../.." && pwd)
    [ -x "$build/tests/test_cuda_device" ] || die "$build has no tests/test_cuda_device; build with the CUDA Toolkit first"
    mkdir -p "$to"
    part=$(mktemp -d)
    mkdir "$part"/{bin,tests,lib,bench}
    cp "$build"/bin/{weft,gpt,mnist} "$part/bin/"
    for name in "${tests[@]}"; do cp "$build/tests/test_cuda_$name" "$part/tests/"; done
    [ -x "$build/bin/bench/bench_weft" ] || die "$build has no bin/bench/bench_weft; build its target bench first"
    cp "$build/bin/bench/bench_weft" "$top"/tests/bench/*.py "$part/bench/"
    cp -L "$build"/lib/libweft.so.0 "$build"/lib/libweft_cuda.so "$part/lib/"
    hdf5=$(hdf5_of "$build")
    if [ -n "$hdf5" ]; then cp -L "$hdf5" "$part/lib/"; fi
    libraries_of "$part"/bin/* "$part/bench/bench_weft" "$part"/tests/* "$build"/lib/libweft.so.0 ${hdf5:+"$hdf5"} | grep -v '/libweft' | xargs -r -I{} cp -L {} "$part/lib/"
    strip -g "$part"/bin/* "$part"/tests/* "$part"/lib/* 2>/dev/null || true
    cat "$top"/docs/*.md > "$part/text" # to train on
    git -C "$top" describe --always --dirty > "$part/commit" 2>/dev/null || echo unknown > "$part/commit"
    tar -C "$part" -czf "$to/packed.tgz" .
    rm -rf "$part"
    [ "$here/run.sh" -ef "$to/run.sh" ] || cp "$here/run.sh" "$to/run.sh"
    echo "packed $(du -sh "$to" | cut -f1) into $to"
}

# Programs are not run where they were brought: that may be a folder that nothing can be written into.
unpack() {
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    tar -C "$work" -xzf "$here/packed.tgz"
}

# The driver may lie where the loader does not look.
add_driver_folders() {
    local folder
    for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/local/cuda/compat; do
        if [ -e "$folder/libcuda.so.1" ]; then LD_LIBRARY_PATH+=":$folder"; fi
    done
}

# cuBLASLt, cuDNN, NVRTC and NCCL: of Python's packages of them, or of a toolkit.
add_library_folders() {
    local folder packages
    packages=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null) || packages=/nowhere
    for folder in "$packages"/*/lib /usr/local/cuda/lib64 /usr/local/cuda/lib; do
        if [ -d "$folder" ]; then LD_LIBRARY_PATH+=":$folder"; fi
    done
}

prepare() {
    unpack
    export LD_LIBRARY_PATH=${DEVICE_LIBRARIES:+$DEVICE_LIBRARIES:}$work/lib WEFT_SHARE_GPU=1 XDG_CACHE_HOME=$work/cache
    export OPENBLAS_NUM_THREADS=1 PYTHONUNBUFFERED=1
    add_driver_folders
    add_library_folders
    echo "date $(date -u +%FT%TZ), commit $(cat "$work/commit")"
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
    "$work/bin/weft" info --mesh data:1 || true
}

passed=0 failed=0 skipped=0 most_of_all=540
try() { # NAME SECONDS COMMAND...: in so many at most, and in what is left of all
    local name=$1 most=$2 left=$((most_of_all - SECONDS)) status=0
    shift 2
    echo "== $name"
    if [ "$left" -le 0 ]; then
        failed=$((failed + 1))
        echo "FAILED: nothing is left of $most_of_all s"
        return
    fi
    if [ "$left" -lt "$most" ]; then most=$left; fi
    timeout --kill-after=5 "$most" "$@" || status=$?
    case $status in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    124 | 137) failed=$((failed + 1)); echo "FAILED: it was not done in $most s" ;;
    *) failed=$((failed + 1)); echo "FAILED with status $status" ;;
    esac
}

# ---- programs --------------------------------------------------------------------------------------

has_device() { "$work/bin/weft" info --mesh data:1 --device cuda > /dev/null 2>&1; }

# train NAME ARGUMENTS: its losses, a line each, in $work/NAME.losses; as many steps as STEPS says, 5 if nothing
train() {
    local name=$1
    shift
    "$work/bin/gpt" train --data "$work/text" --seed 1 --steps "${STEPS:-5}" --layers 2 --width 32 --heads 4 --seq 16 --batch 4 --sample 0 \
        --run "$work/$name" "$@" > "$work/$name.out" 2>&1 || { cat "$work/$name.out"; return 1; }
    sed -n 's/.*"loss":\([0-9.eE+-]*\).*/\1/p' "$work/$name/metrics.jsonl" > "$work/$name.losses"
}

# trains_alike NAME TOLERANCE ARGUMENTS: steps on the GPU have the losses that those of that name had on the CPU.
trains_alike() {
    local name=$1 tolerance=$2
    shift 2
    has_device || { echo "skipped: no device cuda"; return 77; }
    rm -rf "$work/here"
    train here --device cuda "$@" || return 1
    paste "$work/$name.losses" "$work/here.losses" | awk -v most="$tolerance" '
        { apart = ($1 - $2) / $1; if (apart < 0) apart = -apart; if (!(apart <= most)) bad++; if (NF < 2) bad++ }
        END { print NR " losses, " bad + 0 " of them apart"; exit NR == 0 || bad > 0 }'
}

run() {
    prepare
    for name in "${tests[@]}"; do try "$name" 60 "$work/tests/test_cuda_$name"; done
    export -f train trains_alike has_device
    export work
    try "gpt on the CPU" 60 bash -c 'train cpu --device cpu'
    try "gpt" 60 bash -c 'trains_alike cpu 1e-4'
    WEFT_CUDA_GRAPHS=0 try "gpt, kernel by kernel" 60 bash -c 'trains_alike cpu 1e-4'
    # So far that the loss halves: on the CPU numbers of bf16 are 6e-4 apart, and a rate that is a tenth less 3e-2.
    export STEPS=30
    try "gpt on the CPU, for bf16" 60 bash -c 'train far --device cpu --rate 1e-2 --warmup 0'
    try "gpt in bf16" 60 bash -c 'trains_alike far 5e-3 --precision bf16 --rate 1e-2 --warmup 0'
    unset STEPS
    try "gpt, data parallel" 60 bash -c 'trains_alike cpu 1e-4 --mesh data:2 --layout batch:data'
    try "gpt, model parallel" 60 bash -c 'trains_alike cpu 1e-4 --mesh model:2 --layout hidden:model,heads:model,vocab:model'
    try "gpt, both, ZeRO" 60 bash -c 'trains_alike cpu 1e-4 --mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model --zero 3'
    if command -v compute-sanitizer > /dev/null; then
        try "ops under compute-sanitizer" 120 compute-sanitizer --error-exitcode 9 "$work/tests/test_cuda_ops"
    fi
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}

# ---- bench ------------------------------------------------------------------------------------------

# bench_for SECONDS ARGUMENTS...: what is said in so many at most; lines come as they are known
bench_for() {
    local most=$1 status=0
    shift
    timeout --kill-after=5 "$most" python3 "$work/bench/device.py" --programs "$work/bench" "$@" || status=$?
    case $status in 124 | 137) echo "FAILED: it was not done in $most s" ;; esac
    return "$status"
}

# Beside PyTorch; then step by step, which says what CUDA graphs are worth.
bench() {
    prepare
    has_device || { echo "skipped: no device cuda"; return 77; }
    local status=0 words
    command -v python3 > /dev/null || { echo "skipped: no python3"; return 77; }
    read -ra words <<< "${ROWS:-}"
    bench_for "$most_of_all" ${words[@]+"${words[@]}"} || status=$?
    if [ -z "${ROWS:-}" ] && [ $((most_of_all - SECONDS)) -gt 60 ]; then
        echo "== without CUDA graphs"
        WEFT_CUDA_GRAPHS=0 bench_for 60 --python /nowhere/python3 --only-trainings gpt2_4x1024 || status=$?
    fi
    return "$status"
}

# with_log NAME: what the function of that name says, into NAME's log too
with_log() {
    local log=${OUT:-$here}/$2 status=0
    "$1" 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
    exit "$status"
}

case ${1:-} in
pack) [ $# -ge 2 ] || die "pack DIR [BUILD]"; pack "$2" "${3:-build}" ;;
run) with_log run device.log ;;
bench) with_log bench bench.log ;;
*) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
