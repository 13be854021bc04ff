#!/usr/bin/env bash
# Fetches NVRTC, the compiler for CUDA kernels, from PyPI into
# ${XDG_CACHE_HOME:-~/.cache}/ringtrain unless it is there already, and prints the
# variables to export. It needs python3 with pip, but no GPU.
#
#   eval "$(scripts/nvrtc.sh 12.9.86)"
#
# The version is one of the packages nvidia-cuda-nvrtc-cu11 (such as 11.8.89) or -cu12
# (such as 12.9.86, about 90 MB).
# Exit code: 0 if NVRTC is there, 2 if it cannot be fetched, and for wrong usage.
set -euo pipefail

version=${1-}
case $version in
11.* | 12.*) ;;
*)
	sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
	exit 2
	;;
esac
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/ringtrain/nvrtc-$version
if [[ ! -e $cache ]]; then
	mkdir -p "$(dirname "$cache")"
	work=$(mktemp -d "$cache.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	package=nvidia-cuda-nvrtc-cu${version%%.*}==$version
	if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$work" "$package" >&2; then
		echo "nvrtc.sh: cannot fetch $package: install python3 with pip, or set RINGTRAIN_NVRTC_LIB to a libnvrtc.so" >&2
		exit 2
	fi
	python3 -m zipfile -e "$work"/*.whl "$work"
	rm "$work"/*.whl
	mv -T "$work" "$cache" 2>/dev/null || [[ -e $cache ]] # another process may have fetched it
fi
lib=$cache/nvidia/cuda_nvrtc/lib
file=$(find "$lib" -name 'libnvrtc.so.*[0-9]' | head -n 1)
# NVRTC opens its library of built-ins by name.
printf 'export RINGTRAIN_NVRTC_LIB=%q\nexport LD_LIBRARY_PATH=%q\n' "$file" "$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
