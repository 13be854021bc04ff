package calibration

const (
	kib = 1 << 10
	mib = 1 << 20
)

// An experiment compares ways to make one call.
type experiment struct {
	bytes   int
	inPlace bool
	runs    int     // of each way that count; one more warms up
	calls   int     // of a run, whose times are added; 0 is 1
	refine  bool    // only with more time
	gain    float64 // what a way may take at most, of the time of the first, to be chosen; 0 is usualGain
	// ways returns the choices to compare, given those made so far. The first is taken
	// unless another is clearly faster. With fewer than two there is nothing to compare.
	ways func(c Choices) []Choices
}

// experiments lists all experiments in their order: what takes little time comes first. A
// later one builds on the choices of those before it. A job makes those that it has time
// for, and the next job continues.
var experiments = [...]experiment{
	{bytes: 256 * kib, inPlace: true, runs: 9, ways: steps},
	{bytes: 256 * kib, runs: 9, ways: stringMoves(2*kib, 0)},
	{bytes: 32 * kib, runs: 7, calls: 2 * Stages, ways: rotations(MostChunk/2, 0)},
	{bytes: 16 * kib, runs: 21, calls: 8, ways: ifStrings(stringMoves(2*kib, 32*kib))},
	{bytes: 4 * kib, runs: 21, calls: 8, ways: smalls(8*kib, 2*kib)},
	{bytes: 8 * kib, runs: 21, calls: 8, ways: ifSmall(8*kib, smalls(8*kib, 4*kib))},
	{bytes: 16 * kib, runs: 21, calls: 8, gain: smallGain, ways: ifSmall(8*kib, smalls(8*kib, 16*kib))},
	{bytes: 2 * kib, runs: 21, calls: 8, ways: streams(2*kib, 32*kib)}, // the ranks have timed lines in calls before
	{bytes: 64, runs: 21, calls: 16, ways: prefetches(kib, 0)},
	{bytes: mib, runs: 7, ways: chunks},
	{bytes: 4 * mib, runs: 7, gain: readGain, ways: readsFrom(4 * mib)},
	{bytes: mib, runs: 7, gain: readGain, ways: ifReads(4*mib, readsFrom(mib))},
	{bytes: 16 * mib, runs: 2, ways: readsUpTo(8*mib, 32*mib)},

	// The rest is for a machine where somebody waits for the result.
	{bytes: 2 * mib, runs: 9, refine: true, gain: readGain, ways: ifReads(4*mib, unlessReads(2*mib, readsFrom(2*mib)))},
	{bytes: 4 * mib, runs: 9, refine: true, ways: ifReads(4*mib, readChunks)},
	{bytes: 8 * mib, runs: 7, refine: true, gain: readGain, ways: unlessReads(4*mib, readsFrom(8*mib))},
	{bytes: 16 * mib, runs: 7, refine: true, ways: readsUpTo(8*mib, 16*mib)},
	{bytes: 32 * mib, runs: 5, refine: true, ways: readsUpTo(16*mib, 32*mib)},
	{bytes: 64 * mib, runs: 3, refine: true, ways: readsUpTo(32*mib, 64*mib)},
}

// Experiments is the number of all experiments.
const Experiments = len(experiments)

// vary returns a copy of c for each value, changed by set.
func vary(c Choices, set func(c *Choices, value int), values ...int) []Choices {
	var all []Choices
	for _, value := range values {
		with := c
		set(&with, value)
		all = append(all, with)
	}
	return all
}

func smalls(values ...int) func(Choices) []Choices {
	return func(c Choices) []Choices {
		return vary(c, func(c *Choices, value int) { c.Small = value }, values...)
	}
}

func ifSmall(small int, ways func(Choices) []Choices) func(Choices) []Choices {
	return only(func(c *Choices) bool { return c.Small == small }, ways)
}

func stringMoves(values ...int) func(Choices) []Choices {
	return func(c Choices) []Choices {
		return vary(c, func(c *Choices, value int) { c.StringLeast = value }, values...)
	}
}

func ifStrings(ways func(Choices) []Choices) func(Choices) []Choices {
	return only(func(c *Choices) bool { return c.StringLeast != 0 }, ways)
}

// streams compares the times of ranks whose cores are far. Where they are near, all of them
// take as long, and the first stays. On an Intel Xeon (model 207) cores always seem far, because
// a line takes as long from another core as from memory, but ordinary stores are faster. For
// longer pieces, ranks compare both kinds of stores during calls.
func streams(values ...int) func(Choices) []Choices {
	return func(c Choices) []Choices {
		return vary(c, func(c *Choices, value int) { c.StreamLeast = value }, values...)
	}
}

// rotations returns ways to be compared by several calls: without rotation, a call must come
// back to memory that has just been staged in.
func rotations(values ...int) func(Choices) []Choices {
	return func(c Choices) []Choices {
		return vary(c, func(c *Choices, value int) { c.RotateMost = value }, values...)
	}
}

func prefetches(values ...int) func(Choices) []Choices {
	return func(c Choices) []Choices {
		return vary(c, func(c *Choices, value int) { c.PrefetchMost = value }, values...)
	}
}

func steps(c Choices) []Choices {
	return vary(c, func(c *Choices, value int) { c.InPlaceStep = value }, 16*kib, 8*kib, 32*kib, 64*kib)
}

// chunks does not try larger ones than those that fit into the caches; see Host.chunk. They
// may save a twentieth at 1 MB, where ranks meet less often, but with two ranks on an AMD
// EPYC (Zen 3), 8 MB then take 1.3 times as long.
func chunks(c Choices) []Choices {
	return vary(c, func(c *Choices, value int) { c.Chunk = value }, c.Chunk, c.Chunk/2&^(4*kib-1))
}

func readChunks(c Choices) []Choices {
	return vary(c, func(c *Choices, value int) { c.ReadChunk = value }, 512*kib, 256*kib, mib)
}

// readsFrom compares reading vectors from a size on with not doing so.
func readsFrom(bytes int) func(Choices) []Choices {
	return func(c Choices) []Choices {
		with := c
		with.ReadLeast, with.ReadMost = bytes, max(c.ReadMost, 8*mib)
		return []Choices{c, with}
	}
}

// readsUpTo compares two upper ends of the range, if vectors as large as the first are
// read.
func readsUpTo(most, otherMost int) func(Choices) []Choices {
	return only(func(c *Choices) bool { return c.Reads(most) }, func(c Choices) []Choices {
		return vary(c, func(c *Choices, value int) { c.ReadMost = value }, most, otherMost)
	})
}

func ifReads(bytes int, ways func(Choices) []Choices) func(Choices) []Choices {
	return only(func(c *Choices) bool { return c.Reads(bytes) }, ways)
}

func unlessReads(bytes int, ways func(Choices) []Choices) func(Choices) []Choices {
	return only(func(c *Choices) bool { return !c.Reads(bytes) }, ways)
}

// only returns ways that are compared only where a condition is met.
func only(met func(c *Choices) bool, ways func(Choices) []Choices) func(Choices) []Choices {
	return func(c Choices) []Choices {
		if !met(&c) {
			return nil
		}
		return ways(c)
	}
}
