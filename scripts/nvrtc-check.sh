#!/usr/bin/env bash
# Compiles all CUDA kernels with NVRTC for sm_80 and sm_90. Needs no GPU.
#
# If RINGTRAIN_NVRTC_LIB does not name NVRTC's file, the script fetches NVRTC from PyPI into
# ${XDG_CACHE_HOME:-~/.cache}/ringtrain, once, about 90 MB.
#
#   scripts/nvrtc-check.sh [version of nvidia-cuda-nvrtc-cu12]
#
# Exit code: 0 if all kernels compile, 1 if not, 2 if NVRTC cannot be fetched.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -z ${RINGTRAIN_NVRTC_LIB:-} ]]; then
	variables=$(scripts/nvrtc.sh "${1:-12.9.86}")
	eval "$variables"
fi
export RINGTRAIN_NVRTC_LIB
echo "nvrtc-check: $RINGTRAIN_NVRTC_LIB"
go test -count=1 -timeout 120s -run '^TestNVRTC$' -v ./cuda/kernels
