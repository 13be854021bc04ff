#!/usr/bin/env bash
# Compares the choices of ranks that share memory with others, by forced runs: for each
# size, the time of each way as a multiple of the fastest. See docs/benchmarks.md.
set -euo pipefail

attempts=20 ranks=2 rounds=5 iterations= begin=4K end=16M memory=heap
while [[ $# -gt 0 ]]; do
	case $1 in
	--ranks) ranks=$2 ;;
	--rounds) rounds=$2 ;;
	--iterations) iterations=$2 ;;
	--from) begin=$2 ;;
	--to) end=$2 ;;
	--memory) memory=$2 ;;
	*)
		echo "usage: $0 [--ranks 2] [--rounds 5] [--iterations N] [--from 4K] [--to 16M] [--memory heap|shared]" >&2
		exit 2
		;;
	esac
	shift 2
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=${RINGTRAIN:-$work/ringtrain}
[[ ${RINGTRAIN:-} ]] || CGO_ENABLED=0 go build -o "$program" ./cmd/ringtrain

# busy ends the script.
busy() {
	echo "$0: other programs use the processor: run this on a quiet machine" >&2
	exit 1
}

# ticks prints how long all processors together have worked, in hundredths of a second.
ticks() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }

# quiet waits until no other program wants a processor.
quiet() {
	local still=0
	for ((i = 0; still < 5 && i < 200; i++)); do
		sleep .1
		read -r _ _ _ want _ </proc/loadavg
		if ((${want%/*} <= 1)); then still=$((still + 1)); else still=0; fi
	done
}

# measure CHOICES measures all sizes. It fails if other programs worked meanwhile for
# more than a fiftieth of the time.
measure() {
	quiet
	local before after own
	before=$(ticks)
	TIMEFORMAT='%U %S %R'
	{ time RINGTRAIN_CALIBRATION=$1 "$program" bench collective --ranks "$ranks" --memory "$memory" -b "$begin" -e "$end" ${iterations:+-n "$iterations"} --tune off --csv "$work/out.csv" >"$work/out" 2>&1; } 2>"$work/time" || {
		cat "$work/out" >&2
		exit 1
	}
	after=$(ticks)
	own=$(<"$work/time")
	awk -v all=$((after - before)) -v own="$own" 'BEGIN { split(own, t, " "); exit !(all / 100 - t[1] - t[2] < .05 + .02 * t[3]) }'
}

# Ranks choose as they do in jobs: each measures what those before it had no time for.
for ((attempt = 1; ; attempt++)); do
	quiet
	line=$(XDG_CACHE_HOME=$work/cache RINGTRAIN_CALIBRATION=auto "$program" bench collective --ranks "$ranks" -b 4 -e 4 -n 1 --tune off | grep '^# shared memory: ')
	[[ $line == *"not cached)" || $line == *"measures more)" ]] || break
	((attempt < attempts)) || busy
done
chosen=${line#*: } chosen=${chosen%% *}

ways=(chosen)
if [[ $memory == shared ]]; then
	ways+=(in-place-step={4K,8K,16K,32K,64K})
else
	ways+=(small={2K,4K,8K,16K} chunk={32K,64K,128K,256K} string-least={off,2K,32K} stream-least=off rotate-most=off prefetch-most=off)
	[[ $ranks != 2 ]] || ways+=(read-most=off read-least=1M,read-most=1G)
fi

for ((round = 1; round <= rounds; round++)); do
	for ((n = 0; n < ${#ways[@]}; n++)); do
		way=${ways[(n + round) % ${#ways[@]}]}
		fixed=off,$chosen
		[[ $way == chosen ]] || fixed+=,$way
		for ((attempt = 1; ; attempt++)); do
			measure "$fixed" && break
			((attempt < attempts)) || busy
		done
		awk -F, -v round="$round" -v way="$way" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print round, way, $at["size"], $at["time_us"] }' "$work/out.csv" >>"$work/all"
	done
done

length=".25 s"
[[ ! $iterations ]] || length="$iterations calls"
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), kernel $(uname -r), $(nproc) cores, $ranks ranks, memory $memory, $rounds rounds of $length"
echo "chosen: ${line#*: }"
echo
# The machine may run faster or slower for minutes. So each time is compared with the median of
# its round; a cell is the median of that over the rounds, as a multiple of the least.
awk '
	{ t[$1, $2, $3] = $4; if (!($2 in w)) { w[$2]; ways[++nw] = $2 } if (!($3 in s)) { s[$3]; sizes[++ns] = $3 } if ($1 > rounds) rounds = $1 }
	function median(n, v,   i, j, x) {
		for (i = 2; i <= n; i++) { x = v[i]; for (j = i - 1; j >= 1 && v[j] > x; j--) v[j + 1] = v[j]; v[j + 1] = x }
		return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
	}
	END {
		printf "| size |"; for (i = 1; i <= nw; i++) printf " %s |", ways[i]; print " fastest, us |"
		printf "|---|"; for (i = 0; i <= nw; i++) printf "---|"; print ""
		for (k = 1; k <= ns; k++) {
			for (r = 1; r <= rounds; r++) { for (i = 1; i <= nw; i++) v[i] = t[r, ways[i], sizes[k]]; usual[r] = median(nw, v) }
			for (i = 1; i <= nw; i++) {
				for (r = 1; r <= rounds; r++) v[r] = t[r, ways[i], sizes[k]] / usual[r]
				m[i] = median(rounds, v); if (i == 1 || m[i] < least) { least = m[i]; best = ways[i] }
			}
			for (r = 1; r <= rounds; r++) v[r] = t[r, best, sizes[k]]
			fastest = median(rounds, v)
			printf "| %d |", sizes[k]
			for (i = 1; i <= nw; i++) printf " %.2f |", m[i] / least
			printf " %.2f |\n", fastest
		}
	}' "$work/all"
