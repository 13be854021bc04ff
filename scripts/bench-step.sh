#!/usr/bin/env bash
# Times one training step of ringtrain, PyTorch and gorgonia on one core of this
# machine, in one run. Each round measures every program once, in a different order.
# The result is a Markdown table. docs/benchmarks.md says how to read it and what
# makes the comparison fair.
set -euo pipefail
# shellcheck source=scripts/rounds.sh
source "$(dirname "${BASH_SOURCE[0]}")/rounds.sh"

usage() {
	cat <<'USAGE'
Usage: scripts/bench-step.sh [flags]

  --models LIST           models to train, of mlp,convnet (default both)
  --rounds N              how often everything is measured (default 7)
  --steps N               steps of which a round takes the median (default 300, after 30 that do not count)
  --peers LIST            programs to compare with, of debian,pypi,gorgonia (default all; none: "")
  --core N                the core that everything runs on (default the last)
  --require LIST          fail if a ratio of a peer's time to ringtrain's is lower, such as
                          mlp:debian=2,mlp:gorgonia/ringtrain-openblas=1; 1.5 is for all peers and models
  --out DIR               write table.md, rounds.csv and raw/ to DIR (default runs/step/TIME)
  --quick                 a smoke test: 2 rounds of 60 steps

Variables: DEBIAN_PYTHON (default /usr/bin/python3) and PYPI_PYTHON (default
ringtrain-torch/bin/python in TMPDIR) are the Pythons with PyTorch.
Exit codes: 0 done, 1 something broke, losses differed too much, or --require was not met, 2 wrong usage.
USAGE
}

models=mlp,convnet rounds='' steps='' peers=debian,pypi,gorgonia core='' require='' out='' quick=no
options "models rounds steps peers core require out" "$@"
if [[ $quick == yes ]]; then
	rounds=${rounds:-2} steps=${steps:-60}
fi
rounds=${rounds:-7} steps=${steps:-300}

[[ $models =~ ^(mlp|convnet)(,(mlp|convnet))?$ ]] || wrong "--models must be mlp, convnet or both, not $models"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || wrong "--rounds must be a number, not $rounds"
[[ $steps =~ ^[1-9][0-9]*$ ]] || wrong "--steps must be a number, not $steps"
[[ $peers =~ ^(|(debian|pypi|gorgonia)(,(debian|pypi|gorgonia)){0,2})$ ]] || wrong "--peers must be some of debian,pypi,gorgonia, not $peers"
command -v taskset >/dev/null || broken "taskset is missing. On Debian: apt-get install util-linux"
core=${core:-$(taskset -cp $$ | sed 's/.*[^0-9]//')}
taskset -c "$core" true 2>/dev/null || wrong "--core must be the number of a core of this machine, not $core"

prepare step
# Every program uses its defaults, with one thread.
unset RINGTRAIN_OPENBLAS OPENBLAS_CORETYPE MKL_NUM_THREADS GOMAXPROCS GOGC GODEBUG
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
debian=${DEBIAN_PYTHON:-/usr/bin/python3}
pypi=${PYPI_PYTHON:-${TMPDIR:-/tmp}/ringtrain-torch/bin/python}
programs=(ringtrain)

# has FLAG... reports whether the processor has all of these features.
has() {
	local flags flag
	flags=" $(sed -n 's/^flags[^:]*: //p' /proc/cpuinfo | head -n 1) "
	for flag; do
		[[ $flags == *" $flag "* ]] || return 1
	done
}

# core_type prints OpenBLAS's name for a processor like this one, or nothing. nn/cpu
# makes the same choice.
core_type() {
	if has avx512f avx512bw avx512cd avx512dq avx512vl; then
		echo SkylakeX
	elif has avx2 fma; then
		echo Haswell
	fi
}

# find_torch PEER PYTHON HOW adds a PyTorch, with and without OPENBLAS_CORETYPE.
find_torch() {
	wanted "$1" "$peers" || return 0
	if ! "$2" -c 'import torch' >/dev/null 2>&1; then
		note "Not measured: PyTorch of $1, because $2 does not have it. To install it: $3"
		return
	fi
	programs+=("$1")
	if [[ $type ]]; then
		programs+=("$1-core")
	fi
}

# The programs: each run_NAME MODEL writes JSON to stdout. They are called by name.
# shellcheck disable=SC2317
{

# pinned COMMAND... runs a command on the core.
pinned() { "${limit[@]}" taskset -c "$core" "$@"; }

run_ringtrain() { pinned "$work/step" ringtrain "$1" "$work/batches" "$steps"; }
run_ringtrain-openblas() { RINGTRAIN_OPENBLAS=system run_ringtrain "$1"; }
run_debian() { pinned "$debian" scripts/peers/step/step.py "$1" "$work/batches" "$steps"; }
run_debian-core() { OPENBLAS_CORETYPE=$type run_debian "$1"; }
run_pypi() { pinned "$pypi" scripts/peers/step/step.py "$1" "$work/batches" "$steps"; }
run_pypi-core() { OPENBLAS_CORETYPE=$type run_pypi "$1"; }
run_gorgonia() { pinned "$work/step" gorgonia "$1" "$work/batches" "$steps"; }
}

type=$(core_type)
go build -o "$work/step" ./scripts/peers/step
"$work/step" table -require "$require" "$out/raw" >/dev/null 2>"$work/err" || (($? != 2)) || wrong "$(<"$work/err")"
find_torch debian "$debian" "apt-get install --no-install-recommends python3-torch"
find_torch pypi "$pypi" "python3 -m venv ${pypi%/bin/*} && ${pypi%/bin/*}/bin/pip install torch"
if wanted gorgonia "$peers"; then
	programs+=(gorgonia)
fi
"$work/step" batches "$work/batches"
if RINGTRAIN_OPENBLAS=system "$work/step" ringtrain convnet "$work/batches" 1 >/dev/null 2>"$work/err"; then
	programs=(ringtrain ringtrain-openblas "${programs[@]:1}")
else
	note "Not measured: ringtrain with OpenBLAS, because it cannot be loaded. On Debian: apt-get install libopenblas0"
fi
machine "core $core" "OpenBLAS should detect the processor as: ${type:-unknown}." >"$out/table.md"
run_all "$models"
conclude "$work/step" table -require "$require"
