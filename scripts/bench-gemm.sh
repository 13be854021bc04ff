#!/usr/bin/env bash
# Times ringtrain's matrix products, OpenBLAS's and gonum's on one core of this machine,
# once with AVX-512, if the processor has it, and once with AVX2. OpenBLAS is told which
# kernels to use, so both libraries use the same instructions. The result is a Markdown
# table for each. docs/benchmarks.md says how to read them.
set -euo pipefail
# shellcheck source=scripts/rounds.sh
source "$(dirname "${BASH_SOURCE[0]}")/rounds.sh"

usage() {
	cat <<'USAGE'
Usage: scripts/bench-gemm.sh [flags]

  --shapes LIST       products, of cubes,networks,small (default all)
  --instructions LIST of avx512,avx2 (default those that the processor has)
  --rounds N          how often everything is measured (default 7)
  --no-gonum          do not measure gonum, which takes most of the time
  --core N            the core that everything runs on (default the last)
  --require RATIO     fail if a product is slower than OpenBLAS's times this
  --out DIR           write table.md to DIR (default runs/gemm/TIME)

Exit codes: 0 done, 1 something broke or --require was not met, 2 wrong usage.
USAGE
}

shapes=all instructions='' rounds=7 gonum=true core='' require=0 out=''
while (($# > 0)); do
	case $1 in
	--shapes | --instructions | --rounds | --core | --require | --out)
		(($# > 1)) || wrong "$1 needs a value"
		declare "${1#--}=$2"
		shift
		;;
	--no-gonum) gonum=false ;;
	-h | --help) usage && exit ;;
	*) wrong "$1 is not a flag" ;;
	esac
	shift
done

# has FLAG reports whether the processor has this feature.
has() { grep -qw "^flags.* $1" /proc/cpuinfo; }

if [[ -z $instructions ]]; then
	has avx2 && instructions=avx2
	has avx512bw && instructions=avx512,avx2
fi
[[ $instructions =~ ^(avx512|avx2)(,(avx512|avx2))?$ ]] || wrong "--instructions must be some of avx512,avx2, not '$instructions'"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || wrong "--rounds must be a number, not $rounds"
command -v taskset >/dev/null || broken "taskset is missing. On Debian: apt-get install util-linux"
core=${core:-$(taskset -cp $$ | sed 's/.*[^0-9]//')}
taskset -c "$core" true 2>/dev/null || wrong "--core must be the number of a core of this machine, not $core"

prepare gemm
unset RINGTRAIN_OPENBLAS GODEBUG GOMAXPROCS GOGC
export OPENBLAS_NUM_THREADS=1
go build -o "$work/gemm" ./scripts/peers/gemm
machine "core $core" >"$out/table.md"
failed=0
for set in ${instructions//,/ }; do
	case $set in
	avx512) debug='' type=SkylakeX ;;
	avx2) debug=cpu.avx512f=off type=Haswell ;;
	esac
	printf '\n### Matrix products with %s, one core, GFLOP/s\n\n' "$set" >>"$out/table.md"
	GODEBUG=$debug OPENBLAS_CORETYPE=$type taskset -c "$core" "$work/gemm" -rounds "$rounds" -shapes "$shapes" -gonum="$gonum" -require "$require" >>"$out/table.md" || failed=$?
	((failed < 2)) || exit "$failed"
done
cat "$out/table.md"
echo "$out/table.md" >&2
exit "$failed"
