# Sourced by gpu-probe.sh and gpu-check.sh: their flags, parts with time limits, and
# where CUDA's libraries are. A script sets parts_known to the names of its parts,
# and part_limits to the seconds that each may take at most.

# parts_parse reads --parts and --limit from its arguments. What it does not know is
# left in rest.
parts_parse() {
	parts=() limit=0 rest=()
	while (($# > 0)); do
		case $1 in
		--parts)
			[[ -n ${2-} ]] || parts_usage "--parts takes names with commas between: $(parts_join)"
			IFS=, read -r -a parts <<<"$2"
			shift
			;;
		--limit)
			[[ ${2-} =~ ^[1-9][0-9]*$ ]] || parts_usage "--limit takes a number of seconds"
			limit=$2
			shift
			;;
		*) rest+=("$1") ;;
		esac
		shift
	done
	local part
	for part in "${parts[@]}"; do
		[[ -n $part && -n ${part_limits[$part]-} ]] || parts_usage "there is no part $part; the parts are $(parts_join)"
	done
	if ((${#parts[@]} == 0)); then
		parts=("${parts_known[@]}")
	fi
}

parts_join() {
	local IFS=,
	printf '%s' "${parts_known[*]}"
}

parts_usage() {
	echo "$(basename "$0"): $*; --help says more" >&2
	exit 2
}

# parts_help prints the head of the script, which says what it does.
parts_help() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; }

# wanted says whether a part is to run.
wanted() { [[ " ${parts[*]} " == *" $1 "* ]]; }

# left prints how many seconds a part may take: its own limit, or what is left of
# the whole. It fails if that is nothing.
left() {
	local own=${part_limits[$1]}
	if ((limit > 0 && limit - SECONDS < own)); then
		own=$((limit - SECONDS))
	fi
	((own > 0)) && printf '%s\n' "$own"
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

# library prints where a library is: in a toolkit or the system rather than among
# python3's packages, which lack what their libraries open by name, and there by its
# names from the newest to the oldest. wheels is the directory of those packages, if
# there is one.
library() {
	local given=$1 name dir
	shift
	local systems=("${CUDA_HOME:+$CUDA_HOME/lib64}" /usr/local/nvidia/lib64 '/usr/local/cuda*/lib64' '/usr/lib/*-linux-gnu' /usr/lib64)
	local packages=("${VIRTUAL_ENV:+$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/*/lib}" "${wheels:+$wheels/nvidia/*/lib}")
	for name in "$@"; do
		if look_in "$given" "$name" "${systems[@]}"; then
			return 0
		fi
		if dir=$(ldconfig -p 2>/dev/null | awk -v n="$name" '$1 == n {print $NF; exit}') && [[ -n $dir ]]; then
			printf '%s\n' "$dir"
			return 0
		fi
	done
	for name in "$@"; do
		if look_in "" "$name" "${packages[@]}"; then
			return 0
		fi
	done
	return 1
}

# look_in is look for a name in directories, of which some may be empty.
look_in() {
	local given=$1 name=$2 dir places=()
	shift 2
	for dir in "$@"; do
		if [[ -n $dir ]]; then
			places+=("$dir/$name")
		fi
	done
	look "$given" "${places[@]}"
}

# beside exports LD_LIBRARY_PATH with the directories of the files that are its
# arguments, of which some may be empty, first: libraries open others by name.
beside() {
	local file
	for file in "$@"; do
		if [[ $file == */* && :${LD_LIBRARY_PATH-}: != *":${file%/*}:"* ]]; then
			export LD_LIBRARY_PATH=${file%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
		fi
	done
}
