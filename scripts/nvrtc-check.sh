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

if [[ -z ${RINGTRAIN_NVRTC_LIB:-} ]]; then
	variables=$(scripts/nvrtc.sh "${1:-12.9.86}")
	eval "$variables"
fi
export RINGTRAIN_NVRTC_LIB
echo "nvrtc-check: $RINGTRAIN_NVRTC_LIB"
go test -count=1 -timeout 120s -run '^TestNVRTC$' -v ./cuda/kernels
