# shellcheck shell=bash disable=SC2154
# The scripts that compare programs source this file. It measures programs on one machine
# in rounds, and lets a table program compare their files. The script that sources it sets
# $out and $rounds, fills $programs with names, and has a function run_NAME CASE for each,
# which writes JSON to stdout, and may use $round. A case is something with which every
# program is measured: a number of ranks, or a model.

self=$(basename "$0")
command_line="scripts/$self $*"
job='' programs=() notes=()
limit=(timeout --foreground --kill-after=10 600) # for one program in one round

# wrong WHAT ends the script because of its command line.
wrong() {
	echo "$self: $1; see --help" >&2
	exit 2
}

# broken WHAT ends the script because something did not work.
broken() {
	echo "$self: $1" >&2
	exit 1
}

# note TEXT prints a note now, and again below the table.
note() {
	notes+=(-note "$1")
	echo "$1" >&2
}

# options NAMES ARGUMENT... sets the variable of each flag. NAMES are the flags with a value,
# without dashes. --quick sets $quick to yes, and --help calls the function usage.
# shellcheck disable=SC2034
options() {
	local names=" $1 "
	shift
	while (($# > 0)); do
		case $1 in
		--quick) quick=yes ;;
		-h | --help) usage && exit ;;
		*)
			[[ $1 =~ ^--[a-z]+$ && $names == *" ${1#--} "* ]] || wrong "$1 is not a flag"
			(($# > 1)) || wrong "$1 needs a value"
			declare -g "${1#--}=$2"
			shift
			;;
		esac
		shift
	done
}

# wanted NAME LIST reports whether a comma-separated list has the name.
wanted() { [[ ,$2, == *,$1,* ]]; }

# prepare NAME makes the directory of results, by default runs/NAME/TIME, and $work,
# which is removed at the end. It changes to the root of the tree.
prepare() {
	out=${out:-runs/$1/$(date +%Y%m%d-%H%M%S)}
	[[ $out == /* ]] || out=$PWD/$out
	if [[ -d $out/raw ]] && [[ $(ls -A "$out/raw") ]]; then
		wrong "$out already has results"
	fi
	mkdir -p "$out/raw"
	cd "$(dirname "${BASH_SOURCE[0]}")/.."
	work=$(mktemp -d)
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# cleanup ends the program that still runs, if any, and removes $work. The traps call
# it.
# shellcheck disable=SC2317
cleanup() {
	if [[ $job ]]; then
		kill -- "-$job" 2>/dev/null || true
		wait "$job" 2>/dev/null || true
	fi
	rm -rf "$work"
}

# machine CORES [LINE]... prints the head of the table: date, machine, the cores that
# were used, and more lines such as versions.
machine() {
	local model line
	model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
	echo "$(date -u '+%Y-%m-%d %H:%M UTC'), $1 of ${model:-an unknown processor}, Linux $(uname -r), load $(cut -d ' ' -f 1 /proc/loadavg) before the run, $(go version | cut -d ' ' -f 3)."
	for line in "${@:2}"; do
		echo "$line"
	done
	printf '\n    %s\n' "$command_line"
}

# run PROGRAM CASE ROUND WORDS leaves a file in raw/ or ends the script. WORDS names
# the case for people.
run() {
	local name=$1 file=$out/raw/$2-$3-$1.json start=$SECONDS rc=0
	printf 'round %d of %d, %s: %s ... ' "$3" "$rounds" "$4" "$name" >&2
	set -m # gives the program its own process group, $job
	round=$3 "run_$name" "$2" </dev/null >"$work/out" 2>"$work/err" &
	job=$!
	set +m
	wait "$job" || rc=$?
	job=''
	if ((rc != 0)); then
		echo "failed" >&2
		tail -n 20 "$work/err" >&2
		((rc != 124)) || broken "$name with $4 took longer than ${limit[3]} s"
		broken "$name with $4 ended with exit code $rc"
	fi
	mv "$work/out" "$file"
	echo "$((SECONDS - start)) s" >&2
}

# run_all CASES [UNIT] runs every program in each round with each of the
# comma-separated cases. Each round starts with a different program.
run_all() {
	local round with i count=${#programs[@]}
	for ((round = 1; round <= rounds; round++)); do
		for with in ${1//,/ }; do
			for ((i = 0; i < count; i++)); do
				run "${programs[(round - 1 + i) % count]}" "$with" "$round" "$with${2:+ $2}"
			done
		done
	done
}

# conclude COMMAND... appends the table to table.md, which begins with the output of
# machine, and ends the script with the command's exit code.
conclude() {
	local rc=0
	"$@" -csv "$out/rounds.csv" "${notes[@]}" "$out/raw" >"$work/table" || rc=$?
	cat "$work/table" >>"$out/table.md"
	cat "$out/table.md"
	echo "results are in $out" >&2
	exit "$rc"
}
