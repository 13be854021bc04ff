package job

import (
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// Origins of keys.
const (
	fromNotebook = "Thinc's notebook on parallel training with Ray"
	fromHere     = "ringtrain"
)

// chapters are all sections and keys of a config. Training.read checks a config against
// them.
var chapters = []config.Chapter{
	{Section: "training", Doc: "how long to train, and on how many rows at a time", Keys: []config.Key{
		{Name: "iterations", Type: config.Int, Least: 1, Default: 200, Doc: "steps to train", Option: "--steps", Origin: fromNotebook},
		{Name: "batch_size", Type: config.Int, Least: 1, Default: 128, Doc: "rows of one worker in one step, or in one micro-batch of --accumulate", Option: "--batch", Origin: fromNotebook},
		{Name: "compress", Type: config.String, Form: "none, bf16, fp16, int8 or topk:R", Default: "none", Doc: "how gradients are compressed on their way to other workers", Option: "--compress", Origin: fromHere},
		{Name: "sparse", Type: config.String, Form: "auto, on or off", Default: "auto", Doc: "whether workers send only those rows of embedding tables that have gradients", Option: "--sparse", Origin: fromHere},
	}},
	{Section: "evaluation", Doc: "how often to measure the model on test data", Keys: []config.Key{
		{Name: "frequency", Type: config.Int, Default: 10, Doc: "steps between evaluations, the first after that many; 0: only at the end, which always has one", Origin: fromNotebook},
		{Name: "batch_size", Type: config.Int, Least: 1, Default: 256, Doc: "test rows of one worker at a time", Origin: fromNotebook},
		{Name: "workers", Type: config.String, Form: "all, first or none", Default: "all", Doc: "workers that evaluate: all share the test rows, the first has all of them, or there are no evaluations", Origin: fromHere},
	}},
	{Section: "model", Doc: "the network", Calls: "layers"},
	{Section: "task", Doc: "what the network learns", Calls: "tasks", Absent: "as the data say"},
	{Section: "optimizer", Doc: "how gradients change the weights", Calls: "optimizers"},
	{Section: "ray", Doc: "resources of this machine for the job; may differ between machines", Keys: []config.Key{
		{Name: "num_workers", Type: config.Int, Least: 1, Default: 1, Doc: "workers on this machine", Option: "--workers", Origin: fromNotebook},
		{Name: "num_cpus", Type: config.Int, Least: 1, Absent: "all", Doc: "cores that the workers of this machine share", Origin: fromNotebook},
		{Name: "object_store_memory", Type: config.Int, Default: 0, Doc: "limit on the data and batches in memory on this machine, in bytes; 0: none", Origin: fromNotebook},
	}},
}

// Manual returns the keys and functions that a config may use with this catalog.
func Manual(c *catalog.Catalog) config.Manual {
	return config.Manual{Chapters: chapters, Registry: c.Registry}
}
