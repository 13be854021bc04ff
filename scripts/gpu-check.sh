#!/usr/bin/env bash
# Checks what only a GPU can show. A visit runs everything in at most nine minutes,
# continues after failures, and prints one table.
#
#   scripts/gpu-check.sh [--visit] [FLAG...]      first visit
#   scripts/gpu-check.sh --visit rest [FLAG...]   second visit
#   scripts/gpu-check.sh --build DIRECTORY        pack the programs for a machine without Go
#
# The steps of the first visit, with the estimated seconds on a GPU and the maximum:
#
#   facts         15   40   libraries and their paths, doctor
#   cuda          20   60   tests of package cuda
#   training      60  120   200 steps from the CPU's weights: loss within 1e-5, gradients
#                           within 1e-4, except in up to 3 steps in which a ReLU flips;
#                           200 steps without the CPU; graphs of whole steps
#   parity        50   90   each kernel against nn/cpu, in its own process
#   conformance   45  110   the rest of nn/gpu
#   costs         30   60   launches, graphs, copies and products, without ringtrain
#   train         60  110   the command on both examples, 1 worker and 2 that share the GPU:
#                           accuracy within a point of the CPU's; gradients in buckets
#   entities      15   60   examples/ner.cfg: 1000 steps in at most 5 s; without dropout,
#                           the losses of 25 steps within 1e-3 of the CPU's
#   nccl          55  120   NCCL's operations, and processes that share the GPU
#   kill          50  100   kill -9 of a rank: one graph per step, two, or none
#   speed        125  200   training steps, alternating with PyTorch's, and goals
#
# The second visit:
#
#   failed       120  240   the failures in the first visit's result.json
#   sanitizer    160  260   compute-sanitizer on the kernels and a run
#   bf16          70  120   bfloat16 and TF32
#   overlap       90  130   steps that sum gradients during the backward pass
#   bench         60  100   bench collective, with and without NCCL
#
# A step leaves later steps their estimated time. A failed test runs again alone, with
# CUDA_LAUNCH_BLOCKING=1 and under compute-sanitizer's memcheck. If an essential test is
# skipped, its step is SKIPPED, which is not ok.
#
# The visit writes report.md, result.json and logs.tar.gz.
#
#   --binaries DIRECTORY   use the programs that --build packed; without this flag they are
#                          built here, which needs Go
#   --out DIRECTORY        where to write (default $OUT, or gpu-check if that is not set)
#   --limit SECONDS        time limit of the visit (default 540)
#   --steps NAMES          run only these steps, separated by commas
#   --earlier FILE         result.json of the first visit (default: in --binaries or --out)
#   --failed NAMES         run these again, not the failures in --earlier: BINARY:TEST or
#                          steps, separated by commas
#   --emulator             run a small version on the emulator, to test the visit itself;
#                          needs Go and g++, and has no compute-sanitizer and no PyTorch
#   RINGTRAIN_NVRTC_LIB, RINGTRAIN_CUBLASLT_LIB, RINGTRAIN_CUDNN_LIB, RINGTRAIN_NCCL_LIB
#                          files of the libraries, if they are not in the usual places
#
# Exit code: 0 if every step is ok, 1 if one is not, 2 for wrong usage.
set -euo pipefail
root=$(dirname "$(dirname "$(realpath -- "${BASH_SOURCE[0]}")")")

usage() {
	echo "gpu-check.sh: $*; see --help" >&2
	exit 2
}

emulator=false rest=false binaries='' build='' out=${OUT:-gpu-check} flags=()
while (($# > 0)); do
	case $1 in
	--visit)
		if [[ ${2-} == rest ]]; then
			rest=true
			shift
		fi
		;;
	--emulator) emulator=true ;;
	--binaries | --build | --out | --limit | --steps | --earlier | --failed)
		[[ -n ${2-} ]] || usage "$1 needs a value"
		case $1 in
		--binaries) binaries=$(realpath -- "$2") ;;
		--build) build=$2 ;;
		--out) out=$2 ;;
		*) flags+=("${1#-}" "$2") ;;
		esac
		shift
		;;
	-h | --help)
		sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"
		exit
		;;
	*) usage "unknown flag $1" ;;
	esac
	shift
done

# make_programs DIRECTORY builds the programs of a visit.
make_programs() {
	local dir variables package
	mkdir -p "$1"
	dir=$(realpath -- "$1")
	(
		cd "$root"
		variables=$("$root/scripts/cuda-headers.sh" --env)
		eval "$variables"
		export CGO_ENABLED=1
		for package in cuda nn/gpu cuda/kernels collective/ncclgroup; do
			go test -c -tags gpu -ldflags '-s -w' -o "$dir/$(basename "$package").test" "./$package"
		done
		go build -tags gpu -ldflags '-s -w' -o "$dir/" ./cmd/ringtrain ./scripts/gpu/speed
		CGO_ENABLED=0 go build -ldflags '-s -w' -o "$dir/" ./scripts/gpu/visit
		"${CC:-cc}" -O2 -std=gnu11 -o "$dir/probe" scripts/gpu/probe.c -ldl
	)
}

most=$((40 << 20)) # bytes of the packed programs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pack DIRECTORY packs the programs into one file, and fails if that is too large.
pack() {
	local file=$1/programs.tar.xz bytes
	mkdir -p "$1"
	rm -f "$1"/programs.tar.*
	if command -v xz >/dev/null; then
		tar -C "$work/bin" -c . | xz -9 >"$file"
	else
		file=$1/programs.tar.gz
		tar -C "$work/bin" -c . | gzip -9 >"$file"
	fi
	bytes=$(stat -c %s "$file")
	echo "$file: $bytes bytes ($((bytes >> 20)) MiB), of at most $((most >> 20)) MiB"
	if ((bytes > most)); then
		rm -f "$file"
		echo "gpu-check.sh: the packed programs were removed because they are too large: raise \"most\" in this script if the machine accepts more" >&2
		return 1
	fi
}

# unpack FROM TO unpacks the programs, with Python if there is no xz.
unpack() {
	local python
	if [[ -e $1/programs.tar.gz ]]; then
		tar -C "$2" -xzf "$1/programs.tar.gz"
		return
	fi
	if command -v xz >/dev/null; then
		xz -dc "$1/programs.tar.xz" | tar -C "$2" -x
		return
	fi
	for python in ${VIRTUAL_ENV:+"$VIRTUAL_ENV/bin/python3"} "$(command -v python3)" /opt/*/.venv/bin/python3 /opt/*/bin/python3; do
		if [[ -x $python ]] && "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$1/programs.tar.xz" "$2"; then
			return
		fi
	done
	echo "gpu-check.sh: $1/programs.tar.xz needs xz, or a python3 with lzma: unpack it elsewhere and copy the directory here" >&2
	return 1
}

if [[ -n $build ]]; then
	make_programs "$work/bin"
	pack "$build"
	exit
fi
programs=$work/bin
mkdir -p "$programs"
if [[ -z $binaries ]]; then
	command -v go >/dev/null || usage "no Go found: build the programs elsewhere with --build, and name them with --binaries"
	make_programs "$programs"
elif [[ -x $binaries/visit ]]; then
	programs=$binaries
elif [[ -e $binaries/programs.tar.xz || -e $binaries/programs.tar.gz ]]; then
	unpack "$binaries" "$programs"
	if [[ -e $binaries/result.json ]]; then
		cp "$binaries/result.json" "$programs/"
	fi
else
	usage "$binaries has no programs: make them with --build $binaries"
fi
flags+=(-root "$root" -binaries "$programs" -out "$out")
if $rest; then flags+=(-rest); fi
if $emulator; then
	variables=$(cd "$root" && go run ./scripts/gpu/emulate "${TMPDIR:-/tmp}/ringtrain-emulator")
	eval "$variables"
	export RINGTRAIN_EMULATOR_RACES=0
	flags+=(-emulator)
fi
# Signals end the visit, which then writes its report.
"$programs/visit" "${flags[@]}" &
visit=$!
trap 'kill -TERM "$visit"' INT TERM
rc=0
while true; do
	wait "$visit" && rc=0 || rc=$?
	kill -0 "$visit" 2>/dev/null || break # otherwise a signal interrupted wait
done
exit "$rc"
