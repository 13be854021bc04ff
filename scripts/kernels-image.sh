#!/usr/bin/env bash
# Makes cuda/kernels/kernels.ptx.gz, the kernels for machines that have no NVRTC,
# unless it is of the present source already: go generate runs this. It compiles by
# NVRTC 11.8, the oldest that takes the source, because a driver takes PTX of its
# own version of CUDA and of older ones.
#
#   scripts/kernels-image.sh [--again]
#
#   --again  make it even if it is of the present source
#
# Exit: 0 it is there, 1 it could not be made, 2 wrong usage, or no NVRTC to be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1-} in
'')
	if go run ./scripts/gpu/image -check 2>/dev/null; then
		exit 0
	fi
	;;
--again) ;;
*)
	sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
	exit 2
	;;
esac
variables=$(scripts/nvrtc.sh 11.8.89)
eval "$variables"
[[ -e cuda/kernels/kernels.ptx.gz ]] || : >cuda/kernels/kernels.ptx.gz # it is embedded in what makes it
go run ./scripts/gpu/image
