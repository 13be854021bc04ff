#!/usr/bin/env bash
# Prints the directory with cuda.h, which a build with -tags gpu needs. It uses a
# toolkit on this machine. Without one it fetches the header from the Python package
# of CUDA's runtime into a cache directory. A build needs no CUDA libraries.
#
#   v="$(scripts/cuda-headers.sh --env)" && eval "$v"
#   go build -tags gpu ./cmd/ringtrain
#
#   --env           print variables to export, not the directory
#   --version V     fetch the header of CUDA 11.8, 12.9 (the default) or 13.0, even if
#                   there is a toolkit
#   --offline       do not fetch
#   --dir DIRECTORY keep fetched headers here, not in the user's cache
#
# Exit code: 0 if found, 1 if not, 2 for wrong usage.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

env=false offline=false version=
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/ringtrain/cuda-headers

usage() {
	echo "cuda-headers.sh: $*; see the head of $0" >&2
	exit 2
}
while (($# > 0)); do
	case $1 in
	--env) env=true ;;
	--offline) offline=true ;;
	--version)
		version=${2-}
		case $version in
		11.8 | 12.9 | 13.0) ;;
		*) usage "--version must be 11.8, 12.9 or 13.0" ;;
		esac
		shift
		;;
	--dir)
		[[ -n ${2-} ]] || usage "--dir needs a directory"
		cache=$(realpath -m -- "$2")
		shift
		;;
	-h | --help)
		sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
		exit 0
		;;
	*) usage "unknown flag $1" ;;
	esac
	shift
done

# installed prints the include directory of a toolkit on this machine, the newest first.
installed() {
	local dir nvcc
	nvcc=$(command -v nvcc || true)
	while IFS= read -r dir; do
		if [[ -n $dir && -r $dir/cuda.h ]]; then
			printf '%s\n' "$dir"
			return 0
		fi
	done < <(
		for dir in "${CUDA_HOME-}" "${CUDA_PATH-}"; do
			if [[ -n $dir ]]; then printf '%s\n' "$dir/include"; fi
		done
		if [[ -n $nvcc ]]; then
			printf '%s\n' "$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include"
		fi
		printf '%s\n' /usr/local/cuda/include /opt/cuda/include /usr/include
		printf '%s\n' /usr/local/cuda-*/include | sort -rV
	)
	return 1
}

# fetched VERSION prints the directory with the header, and fetches it if necessary. A
# header is moved into place only when it is complete.
fetched() {
	local version=$1 package dir
	dir=$cache/$version
	if [[ -s $dir/cuda.h ]]; then
		printf '%s\n' "$dir"
		return 0
	fi
	if $offline; then
		return 1
	fi
	case $version in
	11.8) package=nvidia-cuda-runtime-cu11==11.8.89 ;;
	12.9) package=nvidia-cuda-runtime-cu12==12.9.79 ;;
	13.0) package=nvidia-cuda-runtime==13.0.48 ;;
	esac
	if ! python3 -m pip --version >/dev/null 2>&1; then
		echo "cuda-headers.sh: fetching $package needs python3 with pip: install it, or set CUDA_HOME to a CUDA toolkit" >&2
		return 1
	fi
	echo "cuda-headers.sh: fetching the header of CUDA $version ($package, 4 MB at most)" >&2
	mkdir -p "$cache"
	( # joined by &&, because set -e has no effect to the left of ||
		part=$(mktemp -d "$cache/.part-XXXXXX") &&
			trap 'rm -rf "$part"' EXIT &&
			python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: -d "$part" "$package" >&2 &&
			python3 - "$part" <<'PYTHON' &&
import glob, os, sys, zipfile
part = sys.argv[1]
with zipfile.ZipFile(glob.glob(os.path.join(part, "*.whl"))[0]) as wheel:
    name = next(n for n in wheel.namelist() if n.endswith("/include/cuda.h"))
    with open(os.path.join(part, "cuda.h"), "wb") as header:
        header.write(wheel.read(name))
PYTHON
			mkdir -p "$dir" &&
			mv "$part/cuda.h" "$dir/cuda.h"
	) || return 1
	printf '%s\n' "$dir"
}

if [[ -n $version ]]; then
	include=$(fetched "$version") || include=
else
	include=$(installed || fetched 12.9) || include=
fi
if [[ -z $include ]]; then
	echo "cuda-headers.sh: found no cuda.h, and could not fetch it: install a CUDA toolkit (11.8 to 13) and set CUDA_HOME, or let pip reach its package index" >&2
	exit 1
fi
if ! $env; then
	printf '%s\n' "$include"
	exit 0
fi

# compat13 comes first. It includes the header and undoes the renamings of CUDA 13.
flags="-I$root/cuda/compat13 -I$include"
if [[ $root$include == *[[:space:]]* ]]; then
	flags="\"-I$root/cuda/compat13\" \"-I$include\""
fi
rest=${CGO_CFLAGS--O2 -g}
case $rest in
"$flags "*) ;;
*) rest="$flags $rest" ;;
esac
printf 'export CGO_ENABLED=1\nexport CGO_CFLAGS=%q\n' "$rest"
