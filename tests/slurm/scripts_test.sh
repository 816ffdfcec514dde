#!/usr/bin/env bash
# scripts_test: the batch scripts of apps/slurm on a real Slurm: they run, stop before their time is over, put themselves
# back into the queue, and the losses are those of a run that nobody stopped, bit for bit.
#
#   scripts_test.sh BIN [N]    BIN is the folder of gpt; N runs with requeue (3)
set -euo pipefail

bin=$(readlink -f "$1")
n=${2:-3}
here=$(dirname "$(readlink -f "$0")")
slurm=$here/slurm.sh
scripts=$here/../../apps/slurm
export HOSTS_NAME=scripts-$$ OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ -x "$bin/gpt" ] || { echo "there is no $bin/gpt"; exit 1; }
"$slurm" check || exit $?

work=$(mktemp -d)
trap '"$slurm" down; rm -rf "$work"' EXIT
cd "$work"
ln -s "$(dirname "$bin")" build
head -c 20000 "$here/../../docs/ARCHITECTURE.md" >text
model=(--data text --layers 2 --width 24 --heads 4 --batch 48 --seq 12 --dtype f64 --dropout 0.2 --steps 120)
bad=0

losses() { sed -n 's/.*"step":\([0-9]*\).*"loss":\([^,]*\),.*/\1 \2/p' "$1/metrics.jsonl" | sort -n -u; }

# compare RUN REFERENCE: the same bits in all steps, a step that was run again too.
compare() {
    local count
    count=$(losses "$2" | wc -l)
    if [ "$count" -ge 120 ] && diff <(losses "$1") <(losses "$2") >/dev/null; then
        echo "$1: $count losses, the same bits as $2"
        return
    fi
    echo "$1: other losses than $2"
    bad=1
}

# submit NAME ARGUMENTS OF sbatch: until it has left the queue for good; its exit status in $status, which is $expected, or 0. Slurm lets a job
# that is put back wait for two minutes: here it need not, but a node refuses what begins in the second it was killed in.
submit() {
    local name=$1 job
    shift
    job=$(sbatch --parsable --time=10 --cpus-per-task=1 --output="$name.log" "$@" --run "$name")
    for _ in {1..1000}; do
        case $(squeue -h -j "$job" -t all -o '%T %r') in
            "PENDING BeginTime")
                sleep 2
                scontrol update "JobId=$job" StartTime=now
                sleep 1
                ;;
            PENDING* | RUNNING* | COMPLETING* | REQUEUE*) ;;
            *) break ;;
        esac
        sleep 0.25
    done
    status=$(scontrol show job "$job" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p')
    if [ "$status" != "${expected:-0}" ]; then
        echo "$name: ended with $status:"
        cat "$name.log"
        bad=1
    fi
}

says() {
    if ! grep -q "$2" "$1"; then
        echo "$1 does not say \"$2\""
        bad=1
    fi
}

split=(--layout batch:data,hidden:model,heads:model,vocab:model --zero 1)
build/bin/gpt train --quiet "${model[@]}" --run threads --mesh data:2 --layout batch:data --zero 1
mpirun -n 4 --oversubscribe --bind-to none build/bin/gpt train --quiet "${model[@]}" --run two-d --mesh data:2,model:2 "${split[@]}"
reference() { # NAME ARGUMENTS: what the jobs with requeue do, in one piece
    mpirun -n 4 --oversubscribe --bind-to none build/bin/gpt train --quiet "${model[@]}" --mesh data:4 \
        --layout batch:data --zero 1 --run "$@"
}
reference try
# As many steps as take a job some limits of 1 to 3 s, whatever the machine.
step=$(sed -n 's/.*"ms":\([0-9.e+-]*\).*/\1/p' try/metrics.jsonl | sort -g | sed -n 60p)
steps=$(awk -v step="$step" 'BEGIN { n = int(6000 / step); print n < 120 ? 120 : n }')
reference data --steps "$steps"

"$slurm" up 2
eval "$("$slurm" env)"

submit one-node --cpus-per-task=2 "$scripts/one-node.sbatch" "${model[@]}"
compare one-node threads
submit many-nodes --nodes=2 "$scripts/many-nodes.sbatch" "${model[@]}"
compare many-nodes two-d
submit many-gpus --nodes=2 --ntasks-per-node=2 --gpus-per-node=2 "$scripts/many-gpus.sbatch" "${model[@]}" --device cpu
compare many-gpus two-d
if [ ! -e /dev/nvidia0 ]; then
    expected=2 submit no-gpus --nodes=2 --ntasks-per-node=2 --gpus-per-node=2 "$scripts/many-gpus.sbatch" "${model[@]}"
    says no-gpus.log "there is no device cuda"
fi

# Stopped by a limit of its own, again and again.
requeued=0
for ((i = 1; i <= n; i++)); do
    submit "requeue-$i" --ntasks=4 "$scripts/requeue.sbatch" "${model[@]}" --steps "$steps" --save-every 30 \
        --max-time "$((1200 + RANDOM % 1500))e-3s"
    compare "requeue-$i" data
    stops=$(grep -c "stopped early" "requeue-$i/log.txt" || true)
    if [ "$stops" -gt 0 ]; then requeued=$((requeued + 1)); fi
    echo "requeue-$i: stopped and put back $stops times"
done
echo "$requeued of $n were put back into the queue and went on to their end"
[ $requeued = "$n" ] || bad=1

# Stopped by the signal before the end of the job; and without one by what squeue tells.
slow=(--steps 100000 --save-every 0 --batch 48)
stop_within_the_limit() {
    local name=$1 signal=$2 reason=$3 job state
    job=$(sbatch --parsable --time=1 "$signal" --cpus-per-task=1 --ntasks=2 --output="$name.log" \
        "$scripts/requeue.sbatch" "${model[@]}" "${slow[@]}" --run "$name")
    for _ in {1..400}; do
        state=$(grep "stopped early" "$name/log.txt" 2>/dev/null || true)
        if [ -n "$state" ]; then break; fi
        sleep 0.25
    done
    scancel "$job"
    while [ -n "$(squeue -h -j "$job" 2>/dev/null)" ]; do sleep 0.25; done
    echo "$name: ${state:-was not stopped in time}"
    says "$name/log.txt" "$reason"
    if grep -q "DUE TO TIME LIMIT" "$name.log"; then echo "$name: over its limit"; bad=1; fi
}
stop_within_the_limit by-signal --signal=B:USR1@45 "SIGUSR1 came"
stop_within_the_limit by-squeue --signal=B:URG@1 "the end of the Slurm job (squeue)"
says by-squeue/log.txt "stops before .* (squeue)"
exit $bad
