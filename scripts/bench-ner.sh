#!/usr/bin/env bash
# Trains a recognizer of named entities with ringtrain and with spaCy, on this machine and
# in one run: the same generated sentences, the values of examples/ner.cfg, one process on
# one core each. Each round measures both once. The result is a Markdown table.
set -euo pipefail
# shellcheck source=scripts/rounds.sh
source "$(dirname "${BASH_SOURCE[0]}")/rounds.sh"

usage() {
	cat <<'USAGE'
Usage: scripts/bench-ner.sh [flags]

  --steps N      steps of a run (default 1000)
  --rounds N     how often both are measured, each time with another seed (default 5)
  --sentences N  sentences to train on; a quarter as many are held out (default 2000)
  --data DIR     train on train.iob, .conll or .spacy of DIR instead, and evaluate on dev.* (default: generated sentences)
  --core N       the core that everything runs on (default the last)
  --require X    fail if the ratio of ringtrain's speed to spaCy's is lower
  --out DIR      write table.md, rounds.csv and raw/ to DIR (default runs/ner/TIME)
  --quick        a smoke test: 2 rounds of 60 steps

Variables: SPACY_PYTHON (default ringtrain-spacy/bin/python in TMPDIR) is the Python with spaCy.
Exit codes: 0 done, 1 something broke or --require was not met, 2 wrong usage.
USAGE
}

steps='' rounds='' sentences=2000 data='' core='' require=0 out='' quick=no
options "steps rounds sentences data core require out" "$@"
if [[ $quick == yes ]]; then
	rounds=${rounds:-2} steps=${steps:-60}
fi
rounds=${rounds:-5} steps=${steps:-1000}

[[ $steps =~ ^[1-9][0-9]*$ ]] && ((steps > 10)) || wrong "--steps must be a number above 10, not $steps"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || wrong "--rounds must be a number, not $rounds"
[[ $sentences =~ ^[1-9][0-9]*$ ]] || wrong "--sentences must be a number, not $sentences"
if [[ $data ]]; then
	[[ -d $data ]] || wrong "--data must be a directory, not $data"
	data=$(realpath -- "$data") # before this script changes to the repository
fi
[[ $require =~ ^[0-9]*\.?[0-9]+$ ]] || wrong "--require must be a number, not $require"
command -v taskset >/dev/null || broken "taskset is missing. On Debian: apt-get install util-linux"
core=${core:-$(taskset -cp $$ | sed 's/.*[^0-9]//')}
taskset -c "$core" true 2>/dev/null || wrong "--core must be the number of a core of this machine, not $core"

prepare ner
limit+=(taskset -c "$core")
unset RINGTRAIN_OPENBLAS OPENBLAS_CORETYPE MKL_NUM_THREADS GOMAXPROCS GOGC GODEBUG
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 BLIS_NUM_THREADS=1
config=examples/ner.cfg
python=${SPACY_PYTHON:-${TMPDIR:-/tmp}/ringtrain-spacy/bin/python}
programs=(ringtrain)

# The programs: each run_NAME STEPS writes events to stdout. They are called by name.
# shellcheck disable=SC2317
{

run_ringtrain() {
	"${limit[@]}" "$work/ringtrain" train "$config" --workers 1 --device cpu --steps "$1" --seed "$round" \
		--data "ner:$corpus" --evaluation.frequency 0 --json
}
run_spacy() { "${limit[@]}" "$python" -W ignore scripts/peers/ner/spacy_ner.py "$config" "$work/docs" "$1" "$round"; }
}

go build -o "$work/ringtrain" ./cmd/ringtrain
go build -o "$work/ner" ./scripts/peers/ner
corpus=$work/corpus
if [[ $data ]]; then
	corpus=$data
else
	"$work/ringtrain" data ner "$corpus" --sentences "$sentences" --seed 1 >/dev/null
fi
if version=$("$python" -W ignore -c 'import spacy; print(spacy.__version__)' 2>/dev/null); then
	programs+=(spacy)
	mkdir "$work/docs"
	for part in train dev; do
		files=("$corpus/$part".*)
		((${#files[@]} == 1)) && [[ -f ${files[0]} ]] || wrong "$corpus must have one file $part.*"
		case ${files[0]} in
		*.spacy) cp -- "${files[0]}" "$work/docs" && continue ;;
		*.iob) converter=iob ;;
		*) converter=ner ;; # a token per line
		esac
		"$python" -W ignore -m spacy convert "${files[0]}" "$work/docs" -c "$converter" >"$work/screen" 2>&1 ||
			broken "spacy convert of ${files[0]} failed: $(tail -n 1 "$work/screen")"
	done
else
	note "Not measured: spaCy, because $python does not have it. To install it: python3 -m venv ${python%/bin/*} && ${python%/bin/*}/bin/pip install 'spacy>=3.8,<3.9'"
fi
machine "core $core" "spaCy: ${version:-not installed}." >"$out/table.md"
run_all "$steps" steps
conclude "$work/ner" -require "$require"
