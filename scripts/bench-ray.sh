#!/usr/bin/env bash
# Times training with a parameter server by ringtrain and by Ray's actors, on this machine
# and in one run: the perceptron of examples/mnist.cfg (Thinc in Ray's actors) and the
# ConvNet of examples/convnet.cfg (PyTorch), with updates that wait for all workers and
# updates that do not. Same rows, batch, layers, optimizer and number of updates, one thread
# per process, no evaluation on the way. Each round measures every program once. The result
# is a Markdown table.
set -euo pipefail
# shellcheck source=scripts/rounds.sh
source "$(dirname "${BASH_SOURCE[0]}")/rounds.sh"

usage() {
	cat <<'USAGE'
Usage: scripts/bench-ray.sh [flags]

  --trainings LIST  what to train, and how (default perceptron-sync,perceptron-async,convnet-sync,convnet-async)
  --workers N       number of workers (default 2)
  --steps N         steps of each worker (default 200, as in the notebooks)
  --rounds N        how often everything is measured (default 5)
  --seconds N       end the script if a program takes longer (default 600)
  --curves          evaluate after every ten updates, as the notebooks do, and draw how accuracy grows
                    (accuracy-NETWORK.png and .svg); evaluations then count as time
  --require X       fail if the ratio of ringtrain's speed to Ray's is lower
  --out DIR         write table.md, rounds.csv and raw/ to DIR (default runs/ray/TIME)
  --quick           a smoke test: 2 rounds of 20 steps

Variables: RAY_PYTHON (default ringtrain-ray/bin/python in TMPDIR) is the Python with Ray,
Thinc and PyTorch.
Exit codes: 0 done, 1 something broke or --require was not met, 2 wrong usage.
USAGE
}

trainings=perceptron-sync,perceptron-async,convnet-sync,convnet-async
workers=2 steps='' rounds='' seconds=600 require=0 out='' quick=no curves=no
while (($# > 0)); do
	case $1 in
	--trainings | --workers | --steps | --rounds | --seconds | --require | --out)
		(($# > 1)) || wrong "$1 needs a value"
		declare "${1#--}=$2"
		shift
		;;
	--quick) quick=yes ;;
	--curves) curves=yes ;;
	-h | --help) usage && exit ;;
	*) wrong "$1 is not a flag" ;;
	esac
	shift
done
if [[ $quick == yes ]]; then
	rounds=${rounds:-2} steps=${steps:-20}
fi
rounds=${rounds:-5} steps=${steps:-200}

[[ $trainings =~ ^(perceptron|convnet)-a?sync(,(perceptron|convnet)-a?sync)*$ ]] || wrong "--trainings must be names such as perceptron-sync, not $trainings"
for number in workers steps rounds seconds; do
	[[ ${!number} =~ ^[1-9][0-9]*$ ]] || wrong "--$number must be a number, not ${!number}"
done
[[ $require =~ ^[0-9]*\.?[0-9]+$ ]] || wrong "--require must be a number, not $require"

prepare ray
limit=(timeout --foreground --kill-after=10 "$seconds")
# Every program uses its defaults, with one thread per process.
unset RINGTRAIN_OPENBLAS OPENBLAS_CORETYPE MKL_NUM_THREADS GOMAXPROCS GOGC GODEBUG RAY_ADDRESS
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 BLIS_NUM_THREADS=1 RAY_USAGE_STATS_ENABLED=0
python=${RAY_PYTHON:-${TMPDIR:-/tmp}/ringtrain-ray/bin/python}
programs=(ringtrain) curve=()
[[ $curves == no ]] || curve=(curve)

# The programs: each run_NAME NETWORK-MODE writes JSON to stdout. They are called by name.
# shellcheck disable=SC2317
{

run_ringtrain() {
	local config=examples/mnist.cfg sum=() every=0
	[[ $1 == perceptron-* ]] || config=examples/convnet.cfg
	[[ $curves == no ]] || every=10
	# The notebooks sum the gradients of the workers.
	[[ $1 == *-async ]] || sum=(--reduce sum)
	"${limit[@]}" "$work/ringtrain" train "$config" --strategy "ps-${1#*-}" "${sum[@]}" --workers "$workers" --steps "$steps" \
		--device cpu --data "mnist:$work/digits" --seed "$round" --evaluation.frequency "$every" --json >"$work/events" # no pipe, which would hide the exit code of a timeout
	grep -E '"event":"(eval|result)"' "$work/events"
}
# Ray keeps a token in HOME, and sockets and logs in a directory of RAY_TMPDIR.
run_ray() { HOME=$work RAY_TMPDIR=$work/tmp "${limit[@]}" "$python" -W ignore scripts/peers/ray/parameter_server.py "${1%-*}" "${1#*-}" "$work/digits" "$workers" "$steps" "${curve[@]}"; }
}

mkdir "$work/tmp"
go build -o "$work/ringtrain" ./cmd/ringtrain
go build -o "$work/ray" ./scripts/peers/ray
if "$python" -W ignore -c 'import ray, thinc, torch' >"$work/screen" 2>&1; then
	programs+=(ray)
else
	note "Not measured: Ray, because $python cannot import it with Thinc and PyTorch ($(tail -n 1 "$work/screen")). To install them: python3 -m venv ${python%/bin/*} && ${python%/bin/*}/bin/pip install 'ray==2.60.0' 'thinc>=8.3,<9' torch"
fi
"$work/ringtrain" data digits "$work/digits" >/dev/null
machine "$(env -u OMP_NUM_THREADS nproc) cores" >"$out/table.md"
run_all "$trainings"
plots=()
[[ $curves == no ]] || plots=(-plots "$out")
conclude "$work/ray" -require "$require" "${plots[@]}"
