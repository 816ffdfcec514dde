#!/usr/bin/env bash
# The tests of the device cuda on a machine that has a GPU and its driver, and perhaps nothing else: no compiler, no MPI, no BLAS.
#
#   tests/device/run.sh pack DIR [BUILD]    here: the programs and tests of a build (build), and every library that they load
#   DIR/run.sh run                          there: all of them; a log beside it, device.log, with date, driver and commit
#
# Built on the older system of the two: its C library is the one that is not brought along. A test without a device says
# "skipped" with the reason, and the last line counts what passed, failed and was skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() { echo "device: $*" >&2; exit 1; }

# Not the C library's, which belongs to the system, nor the driver's, which belongs to the GPU.
libraries_of() {
    ldd "$@" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
        grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*|libcuda)\.so'
}

pack() {
    local to=$1 build=${2:-build} top
    top=$(cd "$here/../.." && pwd)
    [ -x "$build/tests/test_cuda_device" ] || die "$build has no tests/test_cuda_device; build with the CUDA Toolkit first"
    mkdir -p "$to/bin" "$to/tests" "$to/lib"
    cp "$build"/bin/{weft,gpt,mnist} "$to/bin/"
    cp "$build"/tests/test_cuda_{device,ops,products,attend} "$to/tests/"
    cp -L "$build"/lib/libweft.so.0 "$build"/lib/libweft_cuda.so "$to/lib/"
    libraries_of "$to"/bin/* "$to"/tests/* "$to"/lib/* | grep -v '/libweft' | xargs -r -I{} cp -L {} "$to/lib/"
    cp "${BASH_SOURCE[0]}" "$to/run.sh"
    git -C "$top" rev-parse HEAD > "$to/commit" 2>/dev/null || echo unknown > "$to/commit"
    echo "packed $(du -sh "$to" | cut -f1) into $to"
}

# The driver may lie where the loader does not look.
add_driver_folders() {
    local folder
    for folder in /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/local/cuda/compat; do
        if [ -e "$folder/libcuda.so.1" ]; then LD_LIBRARY_PATH+=":$folder"; fi
    done
}

# cuBLASLt, cuDNN and NVRTC: of a toolkit, or of Python's packages of them.
add_library_folders() {
    local folder packages
    packages=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null) || packages=/nowhere
    for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib "$packages"/*/lib; do
        if [ -d "$folder" ]; then LD_LIBRARY_PATH+=":$folder"; fi
    done
}

passed=0 failed=0 skipped=0
try() {
    local name=$1 status=0
    shift
    echo "== $name"
    timeout 300 "$@" || status=$?
    case $status in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)); echo "FAILED with status $status" ;;
    esac
}

run() {
    export LD_LIBRARY_PATH=$here/lib WEFT_SHARE_GPU=1
    add_driver_folders
    add_library_folders
    echo "date $(date -u +%FT%TZ), commit $(cat "$here/commit")"
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
    try "weft info" "$here/bin/weft" info --mesh data:1
    for test in "$here"/tests/test_*; do
        try "$(basename "$test")" "$test"
    done
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}

case ${1:-} in
pack) [ $# -ge 2 ] || die "pack DIR [BUILD]"; pack "$2" "${3:-build}" ;;
run) run 2>&1 | tee "$here/device.log"; exit "${PIPESTATUS[0]}" ;;
*) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
