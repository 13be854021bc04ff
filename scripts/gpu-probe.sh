#!/usr/bin/env bash
# Measures what a GPU and CUDA's libraries cost on this machine, apart from
# ringtrain's engine: what the libraries are and whether the driver has all
# functions that ringtrain calls; starting, compiling, launching, graphs, copies;
# cuBLASLt's kernels for the products of a small network; PyTorch's training step
# in five ways. It writes Markdown to $OUT/gpu-probe.md, or to stdout without OUT.
#
#   scripts/gpu-probe.sh [--parts NAMES] [--limit SECONDS]
#
#   symbols  whether the driver has the functions that ringtrain calls
#   doctor   what RINGTRAIN doctor says
#   tests    those of package cuda, CUDA_TEST
#   costs    of starting, compiling, launching, graphs, copies and products
#   torch    PyTorch's training steps
#
# --parts takes names with commas between, all unless given. Each part has a time
# limit, 14 minutes together; --limit is one for all. On a machine that is lent for
# ten minutes: --parts symbols,doctor,tests,costs --limit 540, then --parts torch.
#
# It needs bash and an NVIDIA GPU, and uses what there is of nvidia-smi, python3,
# PyTorch, a C compiler and these, which may be carried from another machine:
#
#   PROBE_BINARY     scripts/gpu/probe.c, compiled (cc -O2 -o probe probe.c -ldl),
#                    for a machine without a C compiler
#   RINGTRAIN        a ringtrain built with -tags gpu, for its doctor
#   CUDA_TEST        the tests of package cuda (go test -tags gpu -c ./cuda), to be
#                    run on the device
#   RINGTRAIN_CUDA_LIB, RINGTRAIN_NVRTC_LIB, RINGTRAIN_CUBLASLT_LIB, RINGTRAIN_NCCL_LIB
#                    the libraries' files, if they are not where they usually are
#   PROBE_QUICK=1    leave out the largest products, for a trial on a slow stand-in
#
# A part that cannot be measured says why, and the others are measured. Exit code:
# 0 all was measured, 1 something was not, 2 wrong usage.
set -uo pipefail # not -e: what fails is reported, and the rest goes on

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
declare -A part_limits=([symbols]=30 [doctor]=60 [tests]=120 [costs]=240 [torch]=420)
parts_known=(symbols doctor tests costs torch)
# shellcheck source=gpu/parts.sh
source "$here/gpu/parts.sh"
parts_parse "$@"
if ((${#rest[@]} > 0)); then
	if [[ ${rest[0]} == -h || ${rest[0]} == --help ]]; then
		parts_help
		exit 0
	fi
	parts_usage "${rest[0]} is no flag"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -n ${OUT-} ]]; then
	mkdir -p "$OUT"
	echo "gpu-probe.sh: writing to $OUT/gpu-probe.md" >&2
	exec >"$OUT/gpu-probe.md"
fi
missed=0

# absent reports a part that was not measured.
absent() {
	printf '\nnot measured: %s\n' "$*"
	missed=$((missed + 1))
}

# begin says whether a part is wanted and has time, which is then in seconds.
begin() {
	wanted "$1" || return 1
	if ! seconds=$(left "$1"); then
		absent "$1: no time is left for it"
		return 1
	fi
}

printf '# What a GPU costs\n\n%s, by scripts/gpu-probe.sh.\n\n## Machine\n\n' "$(date -u '+%F %T UTC')"
printf '| what | |\n|---|---|\n| kernel | %s |\n| cores | %s |\n' "$(uname -srm)" "$(nproc)"
python=$(command -v python3 || true)
wheels=
if [[ -n $python ]]; then
	wheels=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null)
	printf '| python3 | %s, %s |\n' "$("$python" -V 2>&1)" "$python"
fi
compiler=$(command -v cc || command -v gcc || command -v clang || true)
printf '| C compiler | %s |\n' "${compiler:-none}"
arch=90
if command -v nvidia-smi >/dev/null; then
	while IFS=, read -r index name driver memory capability sm; do
		printf '| GPU %s |%s, driver%s,%s, compute capability%s, SM clock%s at most |\n' "$index" "$name" "$driver" "$memory" "$capability" "$sm"
		arch=${capability//[!0-9]/}
	done < <(nvidia-smi --query-gpu=index,name,driver_version,memory.total,compute_cap,clocks.max.sm --format=csv,noheader)
else
	absent "there is no nvidia-smi; compute capability 9.0 is assumed"
fi

export RINGTRAIN_CUDA_LIB RINGTRAIN_NVRTC_LIB RINGTRAIN_CUBLASLT_LIB RINGTRAIN_NCCL_LIB
RINGTRAIN_CUDA_LIB=$(library "${RINGTRAIN_CUDA_LIB-}" libcuda.so.1)
RINGTRAIN_NVRTC_LIB=$(library "${RINGTRAIN_NVRTC_LIB-}" libnvrtc.so.13 libnvrtc.so.12 libnvrtc.so.11.2)
RINGTRAIN_CUBLASLT_LIB=$(library "${RINGTRAIN_CUBLASLT_LIB-}" libcublasLt.so.13 libcublasLt.so.12 libcublasLt.so.11)
RINGTRAIN_NCCL_LIB=$(library "${RINGTRAIN_NCCL_LIB-}" libnccl.so.2)
beside "$RINGTRAIN_NCCL_LIB" "$RINGTRAIN_CUBLASLT_LIB" "$RINGTRAIN_NVRTC_LIB"
printf '\n## Libraries\n\n| variable | file |\n|---|---|\n'
for variable in RINGTRAIN_CUDA_LIB RINGTRAIN_NVRTC_LIB RINGTRAIN_CUBLASLT_LIB RINGTRAIN_NCCL_LIB; do
	printf '| %s | %s |\n' "$variable" "${!variable:-not found}"
	# An empty variable is no file.
	[[ -n ${!variable} ]] || unset "$variable"
done

symbols() {
	printf "\n## Functions of the driver that ringtrain's build refers to\n\n"
	if [[ -z $python ]]; then
		absent "there is no python3 to look with"
		return
	fi
	timeout "$seconds" "$python" - "$here/../cuda/symbols.txt" "${RINGTRAIN_CUDA_LIB:-libcuda.so.1}" <<'PYTHON' || missed=$((missed + 1))
import ctypes, sys
try:
    library = ctypes.CDLL(sys.argv[2])
except OSError as error:
    print(f"not measured: {error}")
    sys.exit(1)
rows = [line.split() for line in open(sys.argv[1]) if line.strip() and not line.startswith("#")]
missing = [row for row in rows if not any(hasattr(library, name) for name in row[1:])]
print(f"{len(rows) - len(missing)} of {len(rows)} are there.")
for use, names in ("called", ("own", "cu")), ("only linked", ("link",)):
    lost = [row[1] for row in missing if row[0] in names]
    if lost:
        print(f"\nMissing, {use}: {' '.join(lost)}.")
sys.exit(any(row[0] != "link" for row in missing))
PYTHON
}
if begin symbols; then symbols; fi

if [[ -n ${RINGTRAIN-} ]] && begin doctor; then
	printf '\n## ringtrain doctor\n\n```\n'
	timeout "$seconds" "$RINGTRAIN" doctor 2>&1 || missed=$((missed + 1))
	printf '```\n'
fi

if [[ -n ${CUDA_TEST-} ]] && begin tests; then
	printf '\n## Tests of package cuda\n\n```\n'
	tests=$(realpath -- "$CUDA_TEST")
	(cd "$here/../cuda" && RINGTRAIN_REQUIRE_GPU=1 timeout "$seconds" "$tests" -test.v -test.bench . -test.benchtime 1x 2>&1 | grep -v '^=== ')
	((PIPESTATUS[0] == 0)) || missed=$((missed + 1))
	printf '```\n'
fi

costs() {
	local probe=${PROBE_BINARY-}
	echo
	if [[ -z $probe && -n $compiler ]]; then
		probe=$work/probe
		"$compiler" -O2 -std=gnu11 -o "$probe" "$here/gpu/probe.c" -ldl || probe=
	fi
	if [[ -z $probe ]]; then
		absent "there is neither a C compiler nor PROBE_BINARY"
		return
	fi
	timeout "$seconds" "$probe" "$arch" || {
		rc=$?
		((rc == 1)) || absent "the probe ended with exit code $rc"
		missed=$((missed + 1))
	}
}
if begin costs; then costs; fi

torch() {
	if [[ -z $python ]] || ! "$python" -c 'import torch' 2>/dev/null; then
		printf '\n## PyTorch\n'
		absent "python3 has no PyTorch"
		return
	fi
	PYTHONDONTWRITEBYTECODE=1 timeout "$seconds" "$python" "$here/gpu/baselines.py" 2>"$work/torch.log" || {
		missed=$((missed + 1))
		printf '\nThe last lines on stderr:\n\n```\n%s\n```\n' "$(tail -n 15 "$work/torch.log")"
	}
}
if begin torch; then torch; fi

if ((missed > 0)); then
	printf '\n%d parts were not measured, or not in full.\n' "$missed"
	exit 1
fi
