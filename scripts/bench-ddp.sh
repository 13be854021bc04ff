#!/usr/bin/env bash
# Times a data-parallel training of the perceptron of examples/mnist.cfg by ringtrain
# and by PyTorch's DistributedDataParallel over Gloo, on this machine and in one run:
# same rows, batch, layers, optimizer and dropout, one thread per worker, no evaluation
# on the way. Each round measures every program once. The result is a Markdown table.
set -euo pipefail
# shellcheck source=scripts/rounds.sh
source "$(dirname "${BASH_SOURCE[0]}")/rounds.sh"

usage() {
	cat <<'USAGE'
Usage: scripts/bench-ddp.sh [flags]

  --workers LIST  numbers of workers (default 2)
  --rounds N      how often everything is measured (default 5)
  --steps N       steps of a run (default 1000)
  --require X     fail if the ratio of ringtrain's speed to PyTorch's is lower
  --out DIR       write table.md, rounds.csv and raw/ to DIR (default runs/ddp/TIME)
  --quick         a smoke test: 2 rounds of 60 steps

Variables: PYPI_PYTHON (default ringtrain-torch/bin/python in TMPDIR) is the Python with
PyTorch.
Exit codes: 0 done, 1 something broke or --require was not met, 2 wrong usage.
USAGE
}

workers=2 rounds='' steps='' require=0 out='' quick=no
options "workers rounds steps require out" "$@"
if [[ $quick == yes ]]; then
	rounds=${rounds:-2} steps=${steps:-60}
fi
rounds=${rounds:-5} steps=${steps:-1000}

[[ $workers =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || wrong "--workers must be a list of numbers, not $workers"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || wrong "--rounds must be a number, not $rounds"
[[ $steps =~ ^[1-9][0-9]*$ ]] || wrong "--steps must be a number, not $steps"
[[ $require =~ ^[0-9]*\.?[0-9]+$ ]] || wrong "--require must be a number, not $require"

prepare ddp
# Every program uses its defaults, with one thread per worker.
unset RINGTRAIN_OPENBLAS OPENBLAS_CORETYPE MKL_NUM_THREADS GOMAXPROCS GOGC GODEBUG
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
pypi=${PYPI_PYTHON:-${TMPDIR:-/tmp}/ringtrain-torch/bin/python}
programs=(ringtrain)

# The programs: each run_NAME WORKERS writes JSON to stdout. They are called by name.
# shellcheck disable=SC2317
{

run_ringtrain() {
	"${limit[@]}" "$work/ringtrain" train examples/mnist.cfg --workers "$1" --steps "$steps" --device cpu \
		--data "mnist:$work/digits" --evaluation.frequency 0 --json >"$work/events" # no pipe, which would hide the exit code of a timeout
	grep '"event":"result"' "$work/events"
}
run_ringtrain-openblas() { RINGTRAIN_OPENBLAS=system run_ringtrain "$1"; }
run_pypi() { "${limit[@]}" "$pypi" -W ignore scripts/peers/ddp/ddp.py "$work/digits" "$1" "$steps"; }
}

go build -o "$work/ringtrain" ./cmd/ringtrain
go build -o "$work/ddp" ./scripts/peers/ddp
if "$pypi" -c 'import torch' >/dev/null 2>&1; then
	programs+=(pypi)
else
	note "Not measured: PyTorch, because $pypi does not have it. To install it: python3 -m venv ${pypi%/bin/*} && ${pypi%/bin/*}/bin/pip install torch"
fi
"$work/ringtrain" data digits "$work/digits" >/dev/null
if RINGTRAIN_OPENBLAS=system "$work/ringtrain" train examples/mnist.cfg --steps 1 --data "mnist:$work/digits" >/dev/null 2>&1; then
	programs=(ringtrain ringtrain-openblas "${programs[@]:1}")
else
	note "Not measured: ringtrain with OpenBLAS, because it cannot be loaded. On Debian: apt-get install libopenblas0"
fi
machine "$(env -u OMP_NUM_THREADS nproc) cores" >"$out/table.md"
run_all "$workers" workers
conclude "$work/ddp" -require "$require"
