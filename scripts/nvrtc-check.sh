#!/usr/bin/env bash
# Compiles all CUDA kernels by NVRTC for sm_80 and sm_90. Needs no GPU.
#
# NVRTC is the file that RINGTRAIN_NVRTC_LIB names, or is fetched from PyPI into
# ${XDG_CACHE_HOME:-~/.cache}/ringtrain: once, about 90 MB.
#
#   scripts/nvrtc-check.sh [version of nvidia-cuda-nvrtc-cu12]
#
# Exit: 0 all compiled, 1 not, 2 no NVRTC to be had.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-12.9.86}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ringtrain/nvrtc-$version

if [[ -z ${RINGTRAIN_NVRTC_LIB:-} ]]; then
	if [[ ! -e $cache ]]; then
		mkdir -p "$(dirname "$cache")"
		work=$(mktemp -d "$cache.XXXXXX")
		trap 'rm -rf "$work"' EXIT
		if ! python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$work" "nvidia-cuda-nvrtc-cu12==$version"; then
			echo "nvrtc-check: NVRTC cannot be fetched: install python3 with pip, or set RINGTRAIN_NVRTC_LIB to a libnvrtc.so" >&2
			exit 2
		fi
		python3 -m zipfile -e "$work"/*.whl "$work"
		rm "$work"/*.whl
		mv "$work" "$cache"
	fi
	RINGTRAIN_NVRTC_LIB=$(ls "$cache"/nvidia/cuda_nvrtc/lib/libnvrtc.so.*[0-9] | head -n 1)
	export LD_LIBRARY_PATH=$cache/nvidia/cuda_nvrtc/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
export RINGTRAIN_NVRTC_LIB
echo "nvrtc-check: $RINGTRAIN_NVRTC_LIB"
go test -count=1 -timeout 120s -run '^TestNVRTC$' -v ./cuda/kernels
