#!/usr/bin/env bash
# Measures whether summing gradients during the backward pass makes steps faster.
# It alternates between training steps with gradients in buckets and with all gradients
# at once, on the same network. It writes Markdown.
#
#   scripts/gpu-overlap.sh [--workers N] [--width N] [--rows N] [--bucket BYTES]
#                          [--steps N] [--rounds N] [--quick] RINGTRAIN
#
# RINGTRAIN is the program, built with -tags gpu. If there are more workers than GPUs,
# they share GPUs. NCCL then uses sockets, and the figures are those of a slow network.
# The first third of the steps is not timed. --quick is for a trial on the emulator.
# The script needs bash and awk.
#
# Exit code: 0 if it measured; 1 if not, or if the weights of two workers differ between
# the two ways, although their sums have only one order; 2 for wrong usage.
set -euo pipefail

usage() {
	echo "gpu-overlap.sh: $*; see the head of the script" >&2
	exit 2
}

workers=2 width=4096 rows=256 bucket=1048576 steps=150 rounds=3
while [[ ${1-} == --* ]]; do
	case $1 in
	--workers | --width | --rows | --bucket | --steps | --rounds)
		[[ ${2-} =~ ^[1-9][0-9]*$ ]] || usage "$1 needs a positive number"
		printf -v "${1#--}" %s "$2"
		shift
		;;
	--quick) width=32 rows=16 bucket=1 steps=8 rounds=1 ;;
	*) usage "unknown flag $1" ;;
	esac
	shift
done
(($# == 1)) || usage "name one program"
program=$1 skip=$(((steps + 2) / 3))
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# train writes the milliseconds per step, the plan and the weights' hash to FILE. If FILE
# has fewer milliseconds already, it keeps those.
train() { # FILE GRAPHS BUCKET
	"$program" train "$here/../examples/mnist.cfg" --json --workers "$workers" --device cuda --share-gpu --nccl must --graphs "$2" --bucket "$3" \
		--steps "$steps" --batch "$rows" --model.hidden_width "$width" --evaluation.frequency 0 >"$work/log" 2>"$work/errors" || {
		cat "$work/errors" >&2
		exit 1
	}
	awk -v skip="$skip" -v file="$1" '
		function field(name, text) { text = $0; sub(".*\"" name "\":\"?", "", text); sub("[,\"}].*", "", text); return text }
		/"event":"step"/ { step = field("step"); if (step == skip) begin = field("seconds"); end = field("seconds") }
		/"event":"result"/ { plan = $0; sub(".*\"plan\":\"", "", plan); sub("\".*", "", plan); sum = field("weights_sha256") }
		END {
			if (sum == "") exit 1
			ms = 1000 * (end - begin) / (step - skip)
			if ((getline best < file) > 0 && best < ms) ms = best
			close(file)
			printf "%.3f\n%s\n%s\n", ms, plan, sum > file
		}' "$work/log"
}

for ((round = 0; round < rounds; round++)); do
	for graphs in whole off; do
		train "$work/$graphs.once" "$graphs" 1000000000
		train "$work/$graphs.buckets" "$graphs" "$bucket"
	done
done

rc=0
printf 'Steps of examples/mnist.cfg with layers of %d, %d rows for each of %d workers; the best of %d rounds of %d steps.\n\n' \
	"$width" "$rows" "$workers" "$rounds" "$((steps - skip))"
printf '| `--graphs` | all at once, ms | in buckets, ms | ratio | plan |\n|---|---:|---:|---:|---|\n'
for graphs in whole off; do
	mapfile -t once <"$work/$graphs.once"
	mapfile -t buckets <"$work/$graphs.buckets"
	printf '| %s | %s | %s | %s | %s |\n' "$graphs" "${once[0]}" "${buckets[0]}" \
		"$(awk -v a="${once[0]}" -v b="${buckets[0]}" 'BEGIN { printf "%.2f", b / a }')" "${buckets[1]}"
	if ((workers == 2)) && [[ ${once[2]} != "${buckets[2]}" ]]; then
		printf '\nwith `--graphs %s` the weights of the two ways differ\n' "$graphs"
		rc=1
	fi
done
exit "$rc"
