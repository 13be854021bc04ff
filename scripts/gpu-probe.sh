#!/usr/bin/env bash
# Measures what a GPU and CUDA's libraries cost on this machine, apart from
# ringtrain's engine: what the libraries are and whether the driver has all
# functions that ringtrain calls; starting, compiling, launching, graphs, copies;
# cuBLASLt's kernels for the products of a small network; PyTorch's training step
# in five ways. It writes Markdown to $OUT/gpu-probe.md, or to stdout without OUT.
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

if (($# > 0)); then
	sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}"
	[[ $1 == -h || $1 == --help ]] && exit 0
	exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
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

# look prints the first file that one of the patterns after the first argument
# matches; the first argument names a file that is taken as it is.
look() {
	local given=$1 pattern file
	shift
	if [[ -n $given ]]; then
		printf '%s\n' "$given"
		return 0
	fi
	for pattern in "$@"; do
		while IFS= read -r file; do
			if [[ -e $file ]]; then
				printf '%s\n' "$file"
				return 0
			fi
		done < <(compgen -G "$pattern" | sort -rV)
	done
	return 1
}

# library prints where a library is, by its names from the newest to the oldest.
library() {
	local given=$1 name dir
	shift
	for name in "$@"; do
		local places=()
		for dir in "${CUDA_HOME:+$CUDA_HOME/lib64}" "${VIRTUAL_ENV:+$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/*/lib}" \
			"${wheels:+$wheels/nvidia/*/lib}" /usr/local/nvidia/lib64 '/usr/local/cuda*/lib64' '/usr/lib/*-linux-gnu' /usr/lib64; do
			if [[ -n $dir ]]; then
				places+=("$dir/$name")
			fi
		done
		if look "$given" "${places[@]}"; then
			return 0
		fi
		if name=$(ldconfig -p 2>/dev/null | awk -v n="$name" '$1 == n {print $NF; exit}') && [[ -n $name ]]; then
			printf '%s\n' "$name"
			return 0
		fi
	done
	return 1
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
printf '\n## Libraries\n\n| variable | file |\n|---|---|\n'
for variable in RINGTRAIN_CUDA_LIB RINGTRAIN_NVRTC_LIB RINGTRAIN_CUBLASLT_LIB RINGTRAIN_NCCL_LIB; do
	printf '| %s | %s |\n' "$variable" "${!variable:-not found}"
	# An empty variable is no file.
	[[ -n ${!variable} ]] || unset "$variable"
done

printf "\n## Functions of the driver that ringtrain's build refers to\n\n"
if [[ -z $python ]]; then
	absent "there is no python3 to look with"
elif ! "$python" - "$here/../cuda/symbols.txt" "${RINGTRAIN_CUDA_LIB:-libcuda.so.1}" <<'PYTHON'
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
then
	missed=$((missed + 1))
fi

if [[ -n ${RINGTRAIN-} ]]; then
	printf '\n## ringtrain doctor\n\n```\n'
	timeout 60 "$RINGTRAIN" doctor 2>&1 || missed=$((missed + 1))
	printf '```\n'
fi

if [[ -n ${CUDA_TEST-} ]]; then
	printf '\n## Tests of package cuda\n\n```\n'
	tests=$(realpath -- "$CUDA_TEST")
	(cd "$here/../cuda" && RINGTRAIN_REQUIRE_GPU=1 timeout 120 "$tests" -test.v -test.bench . -test.benchtime 1x 2>&1 | grep -v '^=== ')
	((PIPESTATUS[0] == 0)) || missed=$((missed + 1))
	printf '```\n'
fi

echo
probe=${PROBE_BINARY-}
if [[ -z $probe && -n $compiler ]]; then
	probe=$work/probe
	"$compiler" -O2 -std=gnu11 -o "$probe" "$here/gpu/probe.c" -ldl || probe=
fi
if [[ -z $probe ]]; then
	absent "there is neither a C compiler nor PROBE_BINARY"
else
	timeout 240 "$probe" "$arch" || {
		rc=$?
		((rc == 1)) || absent "the probe ended with exit code $rc"
		missed=$((missed + 1))
	}
fi

if [[ -z $python ]] || ! "$python" -c 'import torch' 2>/dev/null; then
	printf '\n## PyTorch\n'
	absent "python3 has no PyTorch"
else
	PYTHONDONTWRITEBYTECODE=1 timeout 420 "$python" "$here/gpu/baselines.py" 2>"$work/torch.log" || {
		missed=$((missed + 1))
		printf '\nThe last lines on stderr:\n\n```\n%s\n```\n' "$(tail -n 15 "$work/torch.log")"
	}
fi

if ((missed > 0)); then
	printf '\n%d parts were not measured, or not in full.\n' "$missed"
	exit 1
fi
