#!/usr/bin/env bash
# Finds fused multiply-adds in what a run computes. Go may compile x*y + z to one
# operation with one rounding where the processor has it, which is not on amd64 by
# default. An explicit conversion, float32(x*y) + z, forbids that. A line may be fused if
# it calls math.FMA, which is fused on every processor, or if its comment contains the
# word "fused".
#
#   scripts/fused.sh
#
# It compiles for arm64 and reads the assembly. Exit code: 0 if there are none, 1 if there
# are some, 2 for wrong usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if (($#)); then
	sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
	exit 2
fi
# nntest compares within tolerances, and nn/graph runs gorgonia's arithmetic.
packages=$(go list ./nn/... ./trainer/... ./collective/fold ./collective/schedule ./examples/... | grep -vE '/(nn/nntest|nn/graph|nn/gpu)$')
listing=$(mktemp)
trap 'rm -f "$listing"' EXIT
# shellcheck disable=SC2086 # one word per package
GOARCH=arm64 CGO_ENABLED=0 go build -gcflags=-S $packages >"$listing" 2>&1 || {
	tail -n 20 "$listing" >&2
	exit 1
}
if ! grep -q TEXT "$listing"; then
	echo "the compiler printed no assembly" >&2
	exit 1
fi
module=$(go list -m)
found=0
while IFS=: read -r file line; do
	file=${file#"$PWD"/}
	file=${file#"$module"/} # with -trimpath
	text=$(sed -n "${line}p" "$file")
	if [[ $text == *math.FMA\(* || $text == *//*fused* ]]; then
		continue
	fi
	echo "$file:$line: fused on arm64; convert the product, as in float32(x*y) + z: ${text#"${text%%[![:space:]]*}"}"
	found=1
done < <(grep -E '\sFN?M(ADD|SUB)[SD]\s' "$listing" | grep -oE '[^( ]*\.go:[0-9]+' | sort -u)
exit "$found"
