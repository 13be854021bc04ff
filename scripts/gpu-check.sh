#!/usr/bin/env bash
# Checks ringtrain on a GPU: what only a device can show. It writes Markdown with
# the date to $OUT/gpu-check.md, or to stdout without OUT, to be put into docs/gpu.md.
#
#   scripts/gpu-check.sh [--parts NAMES] [--limit SECONDS] [--binaries DIRECTORY]
#   scripts/gpu-check.sh --build DIRECTORY
#
#   conformance  the tests of packages cuda and nn/gpu: every promise of the Backend
#   parity       each kernel against the function of nn/cpu that it equals, on a GPU in
#                a process of its own, as a fault is one of the process; what each takes
#   training     200 steps from the CPU's weights: loss within 1e-5, gradients within
#                1e-4, but in up to 3 steps in which a ReLU flips; 200 steps by
#                itself: accuracy within a point; graphs of steps
#   train        the command, 1 worker and 2 that share the GPU, against the same on the
#                CPU: accuracy within a point
#   nccl         ranks that share the GPU, 1, 2 and 4 processes: the sums of the host;
#                and all calls, within one process where NCCL is 2.30.3 or newer
#   kill         kill -9 of a rank: the others name it within 2 seconds and go on
#   sanitizer    compute-sanitizer finds nothing in any kernel and in a training
#   speed        PyTorch's steps and ours, in this run, and the goals they are held to
#
# A test that fails is run again by itself with CUDA_LAUNCH_BLOCKING=1, and by
# compute-sanitizer's memcheck: three tests at most of each command.
#
# --parts takes names with commas between, all unless given. Each part has a time
# limit of its own; --limit is one for all together, and what is left out for it
# counts as failed. So a machine that is lent for ten minutes checks in several runs:
#
#   scripts/gpu-check.sh --parts conformance,parity,nccl,kill --limit 540
#   scripts/gpu-check.sh --parts training,train --limit 540
#   scripts/gpu-check.sh --parts sanitizer --limit 540
#   scripts/gpu-check.sh --parts speed --limit 540
#
# The programs are built here, if there is Go; for a machine without it, --build
# makes them elsewhere, with --parts only what those need, and --binaries says where
# they are, on a machine that has a copy of the tree. It needs the driver, cuBLASLt,
# NVRTC, NCCL, and for speed python3 with PyTorch.
#
#   --emulator  on stand-ins for all of these, which need Go and g++: shows that
#               the checks run, and what they show without a device. No sanitizer,
#               no PyTorch, few steps.
#   RINGTRAIN_NVRTC_LIB, RINGTRAIN_CUBLASLT_LIB, RINGTRAIN_NCCL_LIB
#               the libraries' files, if they are not where they usually are
#
# Exit code: 0 all parts passed, 1 one failed or could not be checked, 2 wrong usage.
set -uo pipefail # not -e: what fails is reported, and the rest goes on
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")

declare -A part_limits=([conformance]=200 [parity]=180 [training]=240 [train]=120 [nccl]=120 [kill]=150 [sanitizer]=400 [speed]=500)
parts_known=(conformance parity training train nccl kill sanitizer speed)
# shellcheck source=gpu/parts.sh
source "$here/gpu/parts.sh"
parts_parse "$@"
emulator=false binaries= build=
set -- "${rest[@]}"
while (($# > 0)); do
	case $1 in
	--emulator) emulator=true ;;
	--binaries | --build)
		[[ -n ${2-} ]] || parts_usage "$1 takes a directory"
		if [[ $1 == --build ]]; then build=$2; else binaries=$(realpath -- "$2"); fi
		shift
		;;
	-h | --help)
		parts_help
		exit 0
		;;
	*) parts_usage "$1 is no flag" ;;
	esac
	shift
done

# make_programs builds what the parts need into a directory.
make_programs() {
	local dir=$1 variables
	mkdir -p "$dir" && dir=$(realpath -- "$dir") || return 1
	cd "$root" || return 1
	variables=$("$here/cuda-headers.sh" --env) || return 1
	eval "$variables"
	local flags=(-tags gpu -ldflags '-s -w')
	if wanted conformance; then go test "${flags[@]}" -c -o "$dir/cuda.test" ./cuda || return 1; fi
	if wanted conformance || wanted training || wanted sanitizer; then go test "${flags[@]}" -c -o "$dir/gpu.test" ./nn/gpu || return 1; fi
	if wanted parity || wanted sanitizer; then go test "${flags[@]}" -c -o "$dir/kernels.test" ./cuda/kernels || return 1; fi
	if wanted nccl || wanted kill; then go test "${flags[@]}" -c -o "$dir/ncclgroup.test" ./collective/ncclgroup || return 1; fi
	if wanted train; then go build "${flags[@]}" -o "$dir/ringtrain" ./cmd/ringtrain || return 1; fi
	if wanted speed; then go build "${flags[@]}" -o "$dir/speed" ./scripts/gpu/speed || return 1; fi
}

if [[ -n $build ]]; then
	make_programs "$build"
	exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -z $binaries ]]; then
	if ! command -v go >/dev/null; then
		parts_usage "there is no Go here: build the programs elsewhere with --build, and say --binaries"
	fi
	binaries=$work/bin
	make_programs "$binaries" || exit 1
fi
python=$(command -v python3 || true)
wheels=
if [[ -n $python ]]; then
	wheels=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null)
fi
if $emulator; then
	variables=$(cd "$root" && go run ./scripts/gpu/emulate "${TMPDIR:-/tmp}/ringtrain-emulator") || exit 1
	eval "$variables"
	export RINGTRAIN_EMULATOR_RACES=0 RINGTRAIN_PARITY_STEPS=${RINGTRAIN_PARITY_STEPS:-2}
else
	# Not the driver: tests take a driver that is named for the emulator's.
	for found in "NVRTC=$(library "${RINGTRAIN_NVRTC_LIB-}" libnvrtc.so.13 libnvrtc.so.12 libnvrtc.so.11.2)" \
		"CUBLASLT=$(library "${RINGTRAIN_CUBLASLT_LIB-}" libcublasLt.so.13 libcublasLt.so.12 libcublasLt.so.11)" \
		"NCCL=$(library "${RINGTRAIN_NCCL_LIB-}" libnccl.so.2)"; do
		if [[ -n ${found#*=} ]]; then
			export "RINGTRAIN_${found%%=*}_LIB=${found#*=}"
			beside "${found#*=}"
		fi
	done
fi
export RINGTRAIN_REQUIRE_GPU=1 # a test that would skip for want of a GPU fails
if [[ -n ${OUT-} ]]; then
	mkdir -p "$OUT"
	echo "gpu-check.sh: writing to $OUT/gpu-check.md" >&2
	exec >"$OUT/gpu-check.md"
fi

failed=0 # 1 once something in the part has failed
results=()

# try WHAT COMMAND... runs a command in what the part has left, and shows what it says.
try() {
	local what=$1 rc=0 seconds
	shift
	printf '\n%s:\n\n```\n' "$what"
	seconds=$((deadline - SECONDS))
	if ((seconds <= 0)); then
		rc=124
	else
		timeout --kill-after=5 "$seconds" "$@" >"$work/log" 2>&1 || rc=$?
		grep -v '^=== \|^PASS$' "$work/log" | head -n 120
	fi
	case $rc in
	0) ;;
	124 | 137) echo "FAILED: it took longer than the time that was left" ;;
	*) echo "FAILED: exit code $rc" ;;
	esac
	printf '```\n'
	if ((rc != 0)); then
		failed=1
		if (($(wc -l <"$work/log") > 120)); then
			printf '\nThe end of it:\n\n```\n%s\n```\n' "$(tail -n 40 "$work/log")"
		fi
	fi
}

# tests NAME DIRECTORY FLAGS... runs tests where they find their files, and fails too
# if none ran.
tests() {
	local name=$1 dir=$root/$2
	shift 2
	[[ -d $dir ]] || dir=$work
	cd "$dir" || return
	try "$name $*" "$binaries/$name" -test.v -test.timeout "$((deadline - SECONDS))s" "$@"
	if ! grep -q '^--- PASS' "$work/log"; then
		printf '\nFAILED: no test of %s ran.\n' "$name"
		failed=1
	fi
	local broken
	mapfile -t broken < <(broken_tests "$work/log")
	alone "$name" "${broken[@]}"
	cd "$root" || return
}

# broken_tests prints the tests of a log that failed, or began and did not end; of
# those that have subtests, the subtests.
broken_tests() {
	awk '
		/^=== RUN / { begun[$3] = 1 }
		/^ *--- (PASS|SKIP): / { ended[$3] = 1 }
		/^ *--- FAIL: / { broken[$3] = ended[$3] = 1 }
		END {
			for (test in begun) if (!ended[test]) broken[test] = 1
			for (test in broken) {
				leaf = 1
				for (other in broken) if (index(other, test "/") == 1) leaf = 0
				if (leaf) print test
			}
		}' "$1" | sort
}

# alone NAME TEST... runs tests again, each by itself, so that no earlier fault is
# taken for theirs, and the driver and the sanitizer say where the fault is.
alone() {
	local name=$1 test pattern sanitizer end=$deadline deadline
	shift
	sanitizer=$(find_sanitizer) || sanitizer=
	for test in "${@:1:3}"; do
		pattern=$(printf '%s' "$test" | sed -E 's/[].*+?^$(){}|[\\]/\\&/g; s,/,$/^,g')
		deadline=$((SECONDS + 60 < end ? SECONDS + 60 : end))
		try "$test alone, with CUDA_LAUNCH_BLOCKING=1" env CUDA_LAUNCH_BLOCKING=1 "$binaries/$name" -test.v -test.run "^$pattern\$"
		if [[ -n $sanitizer ]]; then
			deadline=$((SECONDS + 60 < end ? SECONDS + 60 : end))
			try "$test alone, by memcheck" "$sanitizer" --tool memcheck --error-exitcode 9 --print-limit 20 "$binaries/$name" -test.v -test.run "^$pattern\$"
		fi
	done
}

# find_sanitizer prints where compute-sanitizer is, if there is a GPU for it.
find_sanitizer() {
	! $emulator && { command -v compute-sanitizer || look "" '/usr/local/cuda*/bin/compute-sanitizer'; }
}

# kernels_apart runs TestParity in a process for each kernel, and then again those
# that failed.
kernels_apart() {
	local names name rc seconds broken=()
	mapfile -t names < <(sed -nE 's/ *__launch_bounds__ *\([^)]*\)//; s/^extern "C" __global__ +void +([a-z0-9_]+)\(.*/\1/p' "$root"/cuda/kernels/*.cu)
	cd "$root/cuda/kernels" || return
	printf '\nTestParity, in a process for each of %d kernels:\n\n```\n' "${#names[@]}"
	for name in "${names[@]}"; do
		rc=0 seconds=$((SECONDS + 30 < deadline ? 30 : deadline - SECONDS))
		if ((seconds > 0)); then
			timeout --kill-after=5 "$seconds" "$binaries/kernels.test" -test.v -test.run "^TestParity\$/^$name\$" >"$work/log" 2>&1 || rc=$?
			if ((rc == 0)) && grep -q -- "^ *--- PASS: TestParity/$name " "$work/log"; then
				echo "passed $name"
				continue
			fi
			grep -v '^=== ' "$work/log" | head -n 20
		fi
		echo "FAILED $name: exit code $rc; it had $seconds s"
		broken+=("TestParity/$name")
	done
	printf '```\n'
	if ((${#broken[@]} > 0 || ${#names[@]} == 0)); then
		failed=1
		alone kernels.test "${broken[@]}"
	fi
	cd "$root" || return
}

part_conformance() {
	tests cuda.test cuda -test.skip 'Headers|StubsFail'
	tests gpu.test nn/gpu -test.skip 'TestLockstep|TestFreeRun|TestTraining|TestWholeStep'
}
part_parity() {
	if $emulator; then
		tests kernels.test cuda/kernels -test.run '^(TestParity|TestImageIsOfTheSource|TestImageHasBounds|TestResources)$'
		return
	fi
	tests kernels.test cuda/kernels -test.run '^(TestImageIsOfTheSource|TestImageHasBounds|TestResources)$'
	kernels_apart
}
part_training() { tests gpu.test nn/gpu -test.run '^(TestTraining|TestWholeStep|TestWholeStepCalls|TestLockstep|TestFreeRun)$'; }

part_train() {
	local steps=200 workers device
	local -A accuracy
	if $emulator; then
		steps=4
	fi
	for workers in 1 2; do
		for device in cpu cuda; do
			local flags=(train "$root/examples/mnist.cfg" --device "$device" --workers "$workers" --steps "$steps" --json)
			if [[ $device == cuda ]]; then
				flags+=(--share-gpu)
			fi
			try "ringtrain ${flags[*]}" bash -o pipefail -c '"$@" | tail -n 1' - "$binaries/ringtrain" "${flags[@]}"
			accuracy[$device]=$(sed -nE 's/.*"accuracy":([0-9.]+).*/\1/p' "$work/log")
		done
		if ! awk -v a="${accuracy[cpu]}" -v b="${accuracy[cuda]}" 'BEGIN { exit !(a != "" && b != "" && a - b <= .01 && b - a <= .01) }'; then
			printf '\nFAILED: the accuracy is %s on the GPU and %s on the CPU\n' "${accuracy[cuda]:-unknown}" "${accuracy[cpu]:-unknown}"
			failed=1
		fi
	done
}

part_nccl() { tests ncclgroup.test collective/ncclgroup -test.run '^(TestProcesses|TestOperations|TestRingOrder|TestSub|TestQueue|TestCaptureOfAGroupsCall)$'; }
part_kill() { tests ncclgroup.test collective/ncclgroup -test.run '^TestKilledRank$'; }

part_sanitizer() {
	local sanitizer tool
	if $emulator; then
		printf '\nnot checked: compute-sanitizer needs a GPU; the emulator looks for the same with -test.run TestParity.\n'
		return 1
	fi
	sanitizer=$(find_sanitizer) || {
		printf '\nFAILED: there is no compute-sanitizer: it comes with a CUDA toolkit.\n'
		failed=1
		return
	}
	for tool in memcheck racecheck synccheck initcheck; do
		try "$tool of all kernels" "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 20 \
			"$binaries/kernels.test" -test.run '^TestParity$'
	done
	try "memcheck of a training" "$sanitizer" --tool memcheck --error-exitcode 9 --print-limit 20 "$binaries/gpu.test" -test.run '^TestTraining$'
}

part_speed() {
	if $emulator; then
		try "speed -quick" "$binaries/speed" -quick
		return
	fi
	if [[ -z $python ]] || ! "$python" -c 'import torch' 2>/dev/null; then
		printf '\nFAILED: python3 has no PyTorch to compare with.\n'
		failed=1
		return
	fi
	local rc=0 seconds=$((deadline - SECONDS - 90)) # ours take the rest
	if ((seconds <= 0)); then
		printf '\nFAILED: it takes minutes, and %d s are left.\n' $((deadline - SECONDS))
		failed=1
		return
	fi
	PYTHONDONTWRITEBYTECODE=1 timeout --kill-after=5 "$seconds" "$python" "$here/gpu/baselines.py" --json "$work/torch.json" >"$work/log" 2>&1 || rc=$?
	if ((rc != 0)); then
		printf '\nFAILED: PyTorch, exit code %d:\n\n```\n%s\n```\n' "$rc" "$(tail -n 15 "$work/log")"
		failed=1
	fi
	[[ -e $work/torch.json ]] || return
	timeout --kill-after=5 "$((deadline - SECONDS))" "$binaries/speed" -torch "$work/torch.json" 2>"$work/log" || {
		printf '\nFAILED: exit code %d: %s\n' "$?" "$(tail -n 5 "$work/log")"
		failed=1
	}
}

machine() {
	if $emulator; then
		echo "the emulator, no GPU"
	elif command -v nvidia-smi >/dev/null; then
		nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -n 1 | sed 's/,/, driver/'
	else
		echo "unknown: there is no nvidia-smi"
	fi
}

printf '## %s: %s\n\nBy `scripts/gpu-check.sh %s`. %s.\n' "$(date -u +%F)" "$(machine)" "${parts[*]}" "$(uname -srm)"
for variable in NVRTC CUBLASLT NCCL; do
	name=RINGTRAIN_${variable}_LIB
	printf '%s\n' "- $variable: ${!name:-where the loader looks}"
done
for part in "${parts_known[@]}"; do
	wanted "$part" || continue
	printf '\n### %s\n' "$part"
	begin=$SECONDS failed=0 verdict=passed
	if ! seconds=$(left "$part"); then
		printf '\nFAILED: no time is left for it.\n'
		failed=1
	else
		deadline=$((SECONDS + seconds))
		"part_$part" || verdict="not checked"
	fi
	((failed == 0)) || verdict=FAILED
	results+=("| $part | $verdict | $((SECONDS - begin)) |")
done

printf '\n### Result\n\n| part | | seconds |\n|---|---|---|\n'
printf '%s\n' "${results[@]}"
if [[ ${results[*]} == *FAILED* ]] || { ! $emulator && [[ ${results[*]} == *"not checked"* ]]; }; then
	printf '\nFAILED\n'
	exit 1
fi
