package bench

// A Published row has the figures that the README of spacy_ray_collective (January
// 2021) reports for one number of workers, each on its own machine: seconds for 1000
// updates of spaCy's tok2vec and ner, mean and standard deviation of three trials.
// That equals milliseconds per step. Sharded is spacy-ray, whose peers are sharded
// parameter servers. NCCL is spacy-ray-nccl, which calls NCCL's allreduce for each
// gradient.
type Published struct {
	Workers             int
	Sharded, ShardedStd float64
	NCCL, NCCLStd       float64
}

// PublishedScaling returns that README's table.
func PublishedScaling() []Published {
	return []Published{
		{1, 137.5, 2.1, 116.7, 2.51},
		{2, 354.1, 16.8, 171.1, 1.11},
		{4, 523.9, 10.4, 179.6, 2.91},
		{8, 710.1, 3.0, 205.8, 1.20},
		{16, 1296.1, 42.1, 248.3, 3.63},
	}
}

// A publishedSystem is one of the two systems of a Published row.
type publishedSystem struct {
	name string
	time func(Published) (ms, std float64) // of a step
}

func publishedSystems() []publishedSystem {
	return []publishedSystem{
		{"spacy-ray", func(p Published) (ms, std float64) { return p.Sharded, p.ShardedStd }},
		{"spacy-ray-nccl", func(p Published) (ms, std float64) { return p.NCCL, p.NCCLStd }},
	}
}

// of returns the time of a step, and its growth T(N)/T(1) and scalability N*T(1)/T(N)
// with the system's own T(1).
func (s publishedSystem) of(p Published) (ms, std, growth, scalability float64) {
	ms, std = s.time(p)
	one, _ := s.time(PublishedScaling()[0])
	growth, scalability = scale(p.Workers, one, ms)
	return ms, std, growth, scalability
}

// publishedFor returns the row for a number of workers.
func publishedFor(workers int) (Published, bool) {
	for _, p := range PublishedScaling() {
		if p.Workers == workers {
			return p, true
		}
	}
	return Published{}, false
}
