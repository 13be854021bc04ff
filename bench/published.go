package bench

// A Published row is what the README of spacy_ray_collective (January 2021)
// reports for one number of workers, each on a machine of its own: seconds for
// 1000 updates of spaCy's tok2vec and ner, mean and standard deviation of three
// trials. That is milliseconds per step, too. Sharded is spacy-ray, whose peers
// are sharded parameter servers; NCCL is spacy-ray-nccl, which calls NCCL's
// allreduce for each gradient.
type Published struct {
	Workers             int
	Sharded, ShardedStd float64
	NCCL, NCCLStd       float64
}

// PublishedScaling is that README's table. Its three plots show both times, the
// ratio Sharded/NCCL, and for both N*T(1)/T(N), each by its own T(1).
func PublishedScaling() []Published {
	return []Published{
		{1, 137.5, 2.1, 116.7, 2.51},
		{2, 354.1, 16.8, 171.1, 1.11},
		{4, 523.9, 10.4, 179.6, 2.91},
		{8, 710.1, 3.0, 205.8, 1.20},
		{16, 1296.1, 42.1, 248.3, 3.63},
	}
}

// Ratio is how many times faster allreduce was than the parameter servers.
func (p Published) Ratio() float64 { return p.Sharded / p.NCCL }

// ShardedScaling is growth T(N)/T(1) and scalability N*T(1)/T(N) of spacy-ray.
func (p Published) ShardedScaling() (growth, scalability float64) {
	return scale(p.Workers, PublishedScaling()[0].Sharded, p.Sharded)
}

// NCCLScaling is the same of spacy-ray-nccl.
func (p Published) NCCLScaling() (growth, scalability float64) {
	return scale(p.Workers, PublishedScaling()[0].NCCL, p.NCCL)
}

// publishedFor is the row with so many workers.
func publishedFor(workers int) (Published, bool) {
	for _, p := range PublishedScaling() {
		if p.Workers == workers {
			return p, true
		}
	}
	return Published{}, false
}
