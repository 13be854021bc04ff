// Ranks vote on each step of a recording (nn.Committer). An update needs the votes of all ranks.

// Abort is in host memory. set is not 0 if the host has called Abort, or if an update was withheld.
// withheld is 1 + the first step whose update was withheld, or 0. The host's Resume resets both.
struct Abort {
  int set, unused;
  u64 withheld;
};

// ballot is element i of a vote for a step: an integer from 1 to 256, so that sums over up to
// 65536 ranks are exact in any order. The vote is a bijection of the step that looks random, so
// that garbage, such as votes or gradients of earlier steps in a buffer of NCCL, does not pass for
// it. It is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
__device__ __forceinline__ float ballot(u64 step, int i) {
  u64 z = step + 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  return (float)(1 + (int)(z >> (8 * i) & 255));
}

// votes = this rank's vote for the step, or NaNs if abort is set.
extern "C" __global__ void vote(float* votes, const Progress* progress, const Abort* abort) {
  i64 i = global_thread();
  if (i >= RT_VOTE_LEN) return;
  bool against = ((volatile const Abort*)abort)->set != 0;
  votes[i] = against ? __uint_as_float(0x7fc00000u) : ballot(progress->step, (int)i);
}

// stop = 0 if votes is the sum of this many votes for the step and abort is not set. Otherwise
// stop = 1, which withholds the update, and abort is set, which makes vote vote against all
// later steps.
extern "C" __global__ void commit(int* stop, const float* votes, int ranks, const Progress* progress, Abort* abort) {
  if (global_thread() > 0) return;
  volatile Abort* a = abort;
  u64 step = progress->step;
  bool all = a->set == 0;
  for (int i = 0; i < RT_VOTE_LEN; i++) all = all && votes[i] == __fmul_rn((float)ranks, ballot(step, i));
  *stop = all ? 0 : 1;
  if (all) return;
  if (a->withheld == 0) a->withheld = step + 1;
  a->set = 1;
}
