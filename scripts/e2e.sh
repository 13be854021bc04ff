#!/usr/bin/env bash
# What README.md promises, with real processes and the full digits: the first
# command, its accuracy with 2 and 4 workers, the bug that --faithful-accumulate
# replays, files instead of the built-in digits, workers with different processors, and
# the weights that come back.
# It needs Go alone, prints a line for each check and exits 1 if one failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# check WHAT VALUE OP BOUND compares two numbers.
check() {
	if awk -v a="$2" -v b="$4" "BEGIN { exit !(a $3 b) }"; then
		echo "ok    $1: $2 $3 $4"
	else
		echo "WRONG $1: $2 is not $3 $4"
		failed=1
	fi
}

# same WHAT A B compares two texts.
same() {
	if [[ -n $2 && $2 == "$3" ]]; then
		echo "ok    $1: ${2:0:16}..."
	else
		echo "WRONG $1: '$2' and '$3'"
		failed=1
	fi
}

# field NAME reads a field of the result, which is the last line.
field() { tail -n 1 "$dir/out" | sed -E "s/.*\"$1\":\"?([^,\"}]*).*/\1/"; }

train() { "$dir/ringtrain" train examples/mnist.cfg --json "$@" >"$dir/out"; }

go run ./cmd/ringtrain train examples/mnist.cfg --workers 4 --json >"$dir/out"
check "4 workers, go run" "$(field accuracy)" ">=" .95
check "4 workers, steps" "$(field steps)" "==" 200
four=$(field weights_sha256)

go build -o "$dir/ringtrain" ./cmd/ringtrain
train --workers 4 --transport inproc
same "4 workers, the same bits in one process" "$four" "$(field weights_sha256)"

train --workers 2 --out "$dir/run"
check "2 workers" "$(field accuracy)" ">=" .95
accuracy=$(field accuracy) two=$(field weights_sha256)
"$dir/ringtrain" eval "$dir/run" --json >"$dir/out"
same "eval, accuracy" "$accuracy" "$(field accuracy)"
same "eval, weights" "$two" "$(field weights_sha256)"

"$dir/ringtrain" data digits "$dir/digits" >/dev/null
train --workers 2 --data "mnist:$dir/digits"
same "IDX files written by data digits" "$two" "$(field weights_sha256)"

gunzip "$dir/digits"/*.gz
for f in "$dir/digits"/*; do mv "$f" "${f/-idx/.idx}"; done
train --workers 2 --data "mnist:$dir/digits"
same "plain IDX files under their other names" "$two" "$(field weights_sha256)"

for n in 2 4; do
	train --workers "$n" --steps 100 --faithful-accumulate
	check "--faithful-accumulate, $n workers" "$(field accuracy)" "<" .65
done

train --workers 4 --batch 64 --steps 50
many=$(field weights_sha256)
train --workers 1 --batch 64 --steps 50 --accumulate 4
same "4 workers, and one that accumulates 4 batches" "$many" "$(field weights_sha256)"

# A worker without vector kernels, as on another processor, joins one that has them.
go build -tags noasm -o "$dir/plain" ./cmd/ringtrain
train --workers 2 --steps 50
alike=$(field weights_sha256)
address=127.0.0.1:$((20000 + RANDOM % 10000))
mixed=(train examples/mnist.cfg --nodes 2 --workers 1 --steps 50 --insecure --json --join-timeout 60s)
"$dir/plain" "${mixed[@]}" --join "$address" >/dev/null &
"$dir/ringtrain" "${mixed[@]}" --bind "$address" >"$dir/out"
wait "$!"
same "2 workers, one of them without vector kernels" "$alike" "$(field weights_sha256)"

train --workers 2 --steps 130 --out "$dir/broken" --checkpoint-every 50
"$dir/ringtrain" train examples/mnist.cfg --workers 2 --resume "$dir/broken" --json >"$dir/out"
same "resumed in the middle of an epoch" "$two" "$(field weights_sha256)"

"$dir/ringtrain" train examples/convnet.cfg --json >"$dir/out"
check "convnet, 2 workers" "$(field accuracy)" ">=" .85
"$dir/ringtrain" train examples/convnet.cfg --reduce sum --json >"$dir/out"
check "convnet, 2 workers, --reduce sum" "$(field accuracy)" ">=" .85

cat >"$dir/softmax.cfg" <<'CFG'
[model]
@layers = "Softmax.v1"
[optimizer]
@optimizers = "Adam.v1"
CFG
"$dir/ringtrain" train "$dir/softmax.cfg" --workers 2 --json >"$dir/out"
check "softmax regression, five points below the perceptron" "$(field accuracy)" "<=" "$(awk "BEGIN { print $accuracy - .05 }")"

exit "$failed"
