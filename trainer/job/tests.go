package job

import (
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// whoEvaluates is the key that says which workers evaluate.
const whoEvaluates = "evaluation.workers"

// readTests sets which workers have test rows to what the config says.
func readTests(s *Training, m config.Manual) error {
	who, err := m.String(s.Config, whoEvaluates)
	if err != nil {
		return err
	}
	switch {
	case who == "none":
		s.tests = catalog.NoTests
	case who != "all" && who != "first":
		return s.errorf(whoEvaluates, "%s must be all, first or none, not %q", whoEvaluates, who)
	case s.Spec.asynchronous():
		s.tests = catalog.AloneTests
	case who == "first":
		s.tests = catalog.FirstTests
	}
	return nil
}
