#!/usr/bin/env bash
# Trains one transformer in ringtrain and in PyTorch on one core: a language model with 4
# blocks of width 128, on 1 MB of the Go distribution's source files. Both begin with the
# same weights and take the same rows in the same order. The result is Markdown tables of
# losses and of times per step. docs/benchmarks.md says how to read them.
set -euo pipefail
# shellcheck source=scripts/rounds.sh
source "$(dirname "${BASH_SOURCE[0]}")/rounds.sh"

usage() {
	cat <<'USAGE'
Usage: scripts/bench-transformer.sh [flags]

  --steps N               steps of the training whose losses are compared (default 1000)
  --rounds N              how often steps are timed (default 5)
  --timed N               steps of which a round takes the median (default 40, after 10 that do not count)
  --core N                the core that everything runs on (default the last)
  --require RATIO         fail if the ratio of PyTorch's time to ringtrain's is lower
  --out DIR               write table.md, rounds.csv and raw/ to DIR (default runs/transformer/TIME)
  --quick                 a smoke test: 40 steps, and 2 rounds of 10

Variables: PYPI_PYTHON (default ringtrain-torch/bin/python in TMPDIR) is the Python with PyTorch.
RINGTRAIN_OPENBLAS (default system) is the OpenBLAS with which ringtrain is measured again.
Exit codes: 0 done, 1 something broke, losses differed too much, or --require was not met, 2 wrong usage.
USAGE
}

steps='' rounds='' timed='' core='' require=0 out='' quick=no
options "steps rounds timed core require out" "$@"
if [[ $quick == yes ]]; then
	steps=${steps:-40} rounds=${rounds:-2} timed=${timed:-10}
fi
steps=${steps:-1000} rounds=${rounds:-5} timed=${timed:-40}

[[ $steps =~ ^[1-9][0-9]*$ ]] && ((steps > 10 && steps <= 1000)) || wrong "--steps must be a number from 11 to 1000, not $steps"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || wrong "--rounds must be a number, not $rounds"
[[ $timed =~ ^[1-9][0-9]*$ ]] || wrong "--timed must be a number, not $timed"
[[ $require =~ ^[0-9]*\.?[0-9]+$ ]] || wrong "--require must be a number such as 1.1, not $require"
command -v taskset >/dev/null || broken "taskset is missing. On Debian: apt-get install util-linux"
core=${core:-$(taskset -cp $$ | sed 's/.*[^0-9]//')}
taskset -c "$core" true 2>/dev/null || wrong "--core must be the number of a core of this machine, not $core"

prepare transformer
openblas=${RINGTRAIN_OPENBLAS:-system}
unset RINGTRAIN_OPENBLAS OPENBLAS_CORETYPE MKL_NUM_THREADS GOMAXPROCS GOGC GODEBUG
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
here=scripts/peers/transformer
python=${PYPI_PYTHON:-${TMPDIR:-/tmp}/ringtrain-torch/bin/python}

# The programs: each run_NAME CASE writes events to stdout. They are called by name.
# shellcheck disable=SC2317
{

# pinned COMMAND... runs a command on the core.
pinned() { "${limit[@]}" taskset -c "$core" "$@"; }

# count CASE prints the number of steps of a case.
count() { [[ $1 == loss ]] && echo "$steps" || echo $((timed + 10)); }

# train FLAG... runs ringtrain.
train() {
	pinned "$work/ringtrain" train "$here/transformer.cfg" --workers 1 --transport inproc --device cpu --data "text:$work/text.txt" "$@"
}

run_ringtrain() { train --json --steps "$(count "$1")"; }
run_ringtrain-openblas() { RINGTRAIN_OPENBLAS=$openblas run_ringtrain "$1"; }
run_pytorch() { pinned "$python" -W ignore "$here/transformer.py" "$work/start/model.safetensors" "$work/batches" "$(count "$1")"; }
}

go build -o "$work/ringtrain" ./cmd/ringtrain
go build -o "$work/transformer" "./$here"
"$work/transformer" text "$(go env GOROOT)/src" 1000000 "$work/text.txt"
"$work/transformer" batches "$work/text.txt" 64 16 $((steps > timed + 10 ? steps : timed + 10)) "$work/batches"
# start DIR writes the initial weights, which a step with a learning rate of 0 leaves, and
# prints what multiplies matrices.
start() {
	train --steps 1 --optimizer.learn_rate.initial_rate 0 --out "$1" >"$work/screen" 2>&1 || return
	sed -n 's/^matrix products: //p' "$work/screen"
}

products=$(start "$work/start") || broken "$(<"$work/screen")"
programs=(ringtrain)
if library=$(RINGTRAIN_OPENBLAS=$openblas start "$work/again"); then
	programs+=(ringtrain-openblas)
else
	note "Not measured: ringtrain with OpenBLAS, because it cannot be loaded. On Debian: apt-get install libopenblas0"
fi
if version=$("$python" -W ignore -c 'import torch; print(torch.__version__, torch.backends.cpu.get_cpu_capability(), "MKL" if torch.backends.mkl.is_available() else "without MKL")' 2>/dev/null); then
	programs+=(pytorch)
else
	note "Not measured: PyTorch, because $python does not have it. To install it: python3 -m venv ${python%/bin/*} && ${python%/bin/*}/bin/pip install torch"
fi
machine "core $core" "Matrix products of ringtrain: $products${library:+, and $library}. PyTorch: ${version:-not installed}." >"$out/table.md"
for program in "${programs[@]}"; do
	run "$program" loss 1 "all steps"
done
run_all time
conclude "$work/transformer" table -require "$require"
