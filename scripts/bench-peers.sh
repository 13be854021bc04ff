#!/usr/bin/env bash
# Compares an operation of ringtrain, by default allreduce, with those of Gloo and Open MPI
# on this machine, in one run. Each round measures every program once, in a different
# order. The results are Markdown tables for each number of ranks. docs/benchmarks.md says
# how to read them and what makes the comparison fair.
set -euo pipefail
# shellcheck source=scripts/rounds.sh
source "$(dirname "${BASH_SOURCE[0]}")/rounds.sh"

usage() {
	cat <<'USAGE'
Usage: scripts/bench-peers.sh [flags]

  --operation NAME        allreduce, allgather, alltoall, broadcast, gather, reduce,
                          reducescatter or scatter (default allreduce);
                          Gloo has no comparable reducescatter
  --ranks LIST            numbers of ranks (default 2,4)
  --rounds N              how often everything is measured (default 5)
  --sizes BEGIN:END:STEP  bytes, with K, M or G, and the factor between sizes (default 4:64M:4)
  --transport NAME        tcp, shm or auto, for ringtrain and Open MPI; Gloo has only tcp (default tcp)
  --memory LIST           kinds of memory for ringtrain's vectors, of heap,shared: ordinary memory, or that
                          of cluster.Node.Alloc (default both for shm and auto, heap for tcp)
  --peers LIST            libraries to compare with, of gloo,openmpi (default both; none: "")
  --key-file FILE         measure ringtrain with this key too, in a column of its own (TLS)
  --tls                   the same with a new key
  --require RATIO         fail if any ratio of a peer's time to ringtrain's is lower (default: never fail)
  --out DIR               write table.md, rounds.csv and raw/ to DIR (default runs/peers/TIME)
  --quick                 a smoke test: 3 rounds, sizes 4:4M:16

Variables: CC, CXX, and MPIRUN_ARGS, which adds arguments to mpirun.
Exit codes: 0 done, 1 something broke, a result was wrong, or --require was not met, 2 wrong usage.
USAGE
}

operation=allreduce ranks=2,4 rounds='' sizes='' transport=tcp memory='' peers=gloo,openmpi key='' tls=no require='' out='' quick=no
while (($# > 0)); do
	case $1 in
	--operation | --ranks | --rounds | --sizes | --transport | --memory | --peers | --require | --out)
		(($# > 1)) || wrong "$1 needs a value"
		declare "${1#--}=$2"
		shift
		;;
	--key-file)
		[[ ${2:-} ]] || wrong "--key-file needs a file"
		key=$(realpath -- "$2") tls=yes
		shift
		;;
	--tls) tls=yes ;;
	--quick) quick=yes ;;
	-h | --help) usage && exit ;;
	*) wrong "$1 is not a flag" ;;
	esac
	shift
done
if [[ $quick == yes ]]; then
	rounds=${rounds:-3} sizes=${sizes:-4:4M:16}
fi
rounds=${rounds:-5} sizes=${sizes:-4:64M:4}

[[ $operation =~ ^(allreduce|allgather|alltoall|broadcast|gather|reduce|reducescatter|scatter)$ ]] ||
	wrong "--operation must be allreduce, allgather, alltoall, broadcast, gather, reduce, reducescatter or scatter, not $operation"
[[ $ranks =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || wrong "--ranks must be comma-separated numbers, not $ranks"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || wrong "--rounds must be a number, not $rounds"
[[ $transport =~ ^(tcp|shm|auto)$ ]] || wrong "--transport must be tcp, shm or auto, not $transport"
if [[ ! $memory ]]; then
	memory=heap
	[[ $transport == tcp ]] || memory=heap,shared
fi
[[ $memory =~ ^(heap|shared)(,(heap|shared))?$ ]] || wrong "--memory must be heap, shared or both, not $memory"
if [[ $transport == tcp ]] && wanted shared "$memory"; then
	wrong "--memory shared needs --transport shm or auto: over tcp no rank reads another's memory"
fi
[[ $peers =~ ^(|(gloo|openmpi)(,(gloo|openmpi))?)$ ]] || wrong "--peers must be gloo, openmpi or both, not $peers"
[[ -z $require || $require =~ ^[0-9]*\.?[0-9]+$ ]] || wrong "--require must be a number such as 1.1, not $require"
IFS=: read -r begin end step <<<"$sizes"
if ! { begin=$(numfmt --from=iec "$begin") && end=$(numfmt --from=iec "$end") && [[ $step =~ ^[1-9][0-9]*$ ]]; } 2>/dev/null ||
	! ((step > 1 && begin > 0 && begin % 4 == 0 && begin <= end)); then
	wrong "--sizes must be BEGIN:END:STEP, such as 4:64M:4, in multiples of the 4 bytes of a float32, not $sizes"
fi
all_sizes=()
for ((size = begin; size <= end; size *= step)); do
	all_sizes+=("$size")
done

prepare peers
cores=$(nproc)
unset RINGTRAIN_KEY_FILE # only ringtrain-tls has a key

find_ringtrain() {
	go build -o "$work/ringtrain" ./cmd/ringtrain
	go build -o "$work/peers" ./scripts/peers
	if wanted heap "$memory"; then
		programs+=(ringtrain)
	fi
	if wanted shared "$memory"; then
		programs+=(ringtrain-shared)
	fi
	if [[ $tls == no ]]; then
		return
	fi
	if [[ -z $key ]]; then
		key=$work/job.key
		"$work/ringtrain" keygen "$key" >/dev/null
	fi
	programs+=(ringtrain-tls)
}

# method compiles the code that the peers' programs share.
method() {
	"${CC:-cc}" -O2 -Wall -fexceptions -c scripts/peers/native/method.c -o "$work/method.o"
}

find_gloo() {
	wanted gloo "$peers" || return 0
	local cxx=${CXX:-c++} log=$work/gloo.log
	if [[ $operation == reducescatter ]]; then
		note "Not measured: Gloo, because it has no comparable reducescatter."
	elif ! command -v "$cxx" >/dev/null; then
		note "Not measured: Gloo, because there is no C++ compiler. On Debian: apt-get install g++ libgloo-dev"
	elif ! "$cxx" -E -x c++ - <<<'#include <gloo/allreduce.h>' >/dev/null 2>&1; then
		note "Not measured: Gloo, because it is not installed. On Debian: apt-get install libgloo-dev"
	else
		method
		"$cxx" -O2 -Wall scripts/peers/native/gloo.cc "$work/method.o" -o "$work/gloo" -lgloo -lpthread -lm >"$log" 2>&1 ||
			broken "Gloo's program does not compile: $(<"$log")"
		programs+=(gloo)
	fi
}

find_openmpi() {
	wanted openmpi "$peers" || return 0
	local log=$work/openmpi.log
	if ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null; then
		note "Not measured: Open MPI, because it is not installed. On Debian: apt-get install openmpi-bin libopenmpi-dev"
	elif ! command -v "${CC:-cc}" >/dev/null; then
		note "Not measured: Open MPI, because there is no C compiler. On Debian: apt-get install gcc libc6-dev"
	elif [[ $(mpirun --version 2>/dev/null) != *'Open MPI'* ]]; then
		note "Not measured: Open MPI, because the first mpirun in PATH is not Open MPI's."
	else
		method
		mpicc -O2 -Wall scripts/peers/native/openmpi.c "$work/method.o" -o "$work/openmpi" -lm >"$log" 2>&1 ||
			broken "Open MPI's program does not compile: $(<"$log")"
		programs+=(openmpi)
	fi
}

find_bare() {
	local log=$work/bare.log
	if ((cores < 2)) || [[ $(uname -m) != x86_64 ]]; then
		return 0
	elif ! command -v "${CC:-cc}" >/dev/null; then
		note "Not measured: a bare exchange, because there is no C compiler. On Debian: apt-get install gcc libc6-dev"
	else
		method
		"${CC:-cc}" -O2 -Wall scripts/peers/native/bare.c "$work/method.o" -o "$work/bare" -lm >"$log" 2>&1 ||
			broken "the program of the bare exchange does not compile: $(<"$log")"
		programs+=(bare)
	fi
}

# The programs: each run_NAME RANKS writes JSON to stdout. They are called by name.
# shellcheck disable=SC2317,SC2054
{

# collective RANKS FLAG... runs ringtrain's bench.
collective() {
	"${limit[@]}" "$work/ringtrain" bench collective "$operation" --ranks "$1" --transport "$transport" --json "$work/json" "${@:2}" >/dev/null
	cat "$work/json"
}

run_ringtrain() { collective "$1" -b "$begin" -e "$end" -f "$step" "${@:2}"; }
run_ringtrain-shared() { run_ringtrain "$1" --memory shared; }
run_ringtrain-tls() { run_ringtrain "$1" --key-file "$key"; }
run_ringtrain-garbage() { collective "$1" -b 4K -e 4K -n "$(($1 > cores ? 1000 : 5000))" --garbage 20; } # a call of ranks that share cores took 7 ms
run_bare() {
	if (($1 == 2)); then
		"${limit[@]}" "$work/bare" "${transport/auto/shm}" "${all_sizes[@]}"
	else
		echo '[]'
	fi
}
run_memory() { "${limit[@]}" "$work/peers" memory "$1"; }

run_gloo() {
	local store rank pid pids=() rc=0
	store=$(mktemp -d "$work/store.XXXXXX")
	for ((rank = 1; rank < $1; rank++)); do
		"${limit[@]}" "$work/gloo" "$operation" "$rank" "$1" "$store" "${all_sizes[@]}" >/dev/null &
		pids+=($!)
	done
	"${limit[@]}" "$work/gloo" "$operation" 0 "$1" "$store" "${all_sizes[@]}" || rc=$?
	for pid in "${pids[@]}"; do
		((rc == 0)) || kill "$pid" 2>/dev/null || true # it waits for a rank that has ended
		wait "$pid" || rc=$?
	done
	return "$rc"
}

# Ranks with a core each spin and are pinned. If there are more ranks than cores, they
# must yield while they wait and not be pinned, or a call takes milliseconds. mpirun
# chooses that by itself if it knows the cores; we make sure.
run_openmpi() {
	local args=(--oversubscribe --mca pml ob1) shared=vader
	((EUID != 0)) || args+=(--allow-run-as-root)
	if (($1 <= cores)); then
		args+=(--bind-to core)
	else
		args+=(--bind-to none --mca mpi_yield_when_idle 1)
	fi
	if [[ $(mpirun --version) =~ \ ([0-9]+)\. ]] && ((BASH_REMATCH[1] >= 5)); then
		shared=sm # its name since then
	fi
	case $transport in
	tcp) args+=(--mca btl tcp,self --mca btl_tcp_if_include lo) ;;
	shm) args+=(--mca btl "$shared,self") ;;
	esac
	# shellcheck disable=SC2086 # MPIRUN_ARGS has several arguments
	"${limit[@]}" mpirun "${args[@]}" ${MPIRUN_ARGS:-} -np "$1" "$work/openmpi" "$operation" "$transport" "${all_sizes[@]}"
}
}

# versions prints the peers' versions, for the head of the table.
versions() {
	if [[ ${programs[*]} == *openmpi* ]]; then
		mpirun --version | sed -n '1{s/^mpirun (//; s/)//; s/$/./; p}'
	fi
	if [[ ${programs[*]} == *gloo* ]]; then
		echo "Gloo $(dpkg-query -W -f '${Version}' libgloo-dev 2>/dev/null || echo 'of an unknown version')."
	fi
}

find_ringtrain
find_gloo
find_openmpi
mapfile -t lines < <(versions)
machine "$cores cores" "${lines[@]}" >"$out/table.md"
if [[ $operation == allreduce ]]; then
	find_bare
	programs+=(ringtrain-garbage memory)
fi
run_all "$ranks" ranks
conclude "$work/peers" table ${require:+-require "$require"}
