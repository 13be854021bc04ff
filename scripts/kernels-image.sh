#!/usr/bin/env bash
# Makes cuda/kernels/kernels.ptx.gz, the kernels for machines without NVRTC, unless it
# is up to date. go generate runs this script. It uses NVRTC 11.8, the oldest that
# compiles the source, because a driver accepts only PTX of its own version of CUDA and
# of older ones.
#
#   scripts/kernels-image.sh [--again]
#
#   --again  make the file even if it is up to date
#
# Exit code: 0 if the file is up to date, 1 if it cannot be made, 2 if NVRTC cannot be
# fetched, and for wrong usage.
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
[[ -e cuda/kernels/kernels.ptx.gz ]] || : >cuda/kernels/kernels.ptx.gz # the program below embeds it
go run ./scripts/gpu/image
