package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/cluster"
)

// storedChoices returns what ranks that share memory have chosen here, for each number
// of ranks up to two per core.
func storedChoices() []calibration.Report {
	all := []calibration.Report{}
	store := cluster.Choices("")
	for ranks := 2; ranks <= max(4, 2*runtime.NumCPU()); ranks++ {
		if kept, ok := store.Load(ranks); ok {
			all = append(all, calibration.Report{Choices: kept.Choices, Ranks: ranks, Source: calibration.FromStore})
		}
	}
	return all
}

func writeChoices(w io.Writer, all []calibration.Report) {
	if len(all) == 0 {
		fmt.Fprintf(w, "shared    nothing measured yet: the next job of 2 or more workers makes trial calls for at most %v\n", calibration.Bound)
	}
	for _, r := range all {
		fmt.Fprintf(w, "shared    %d ranks: %v\n", r.Ranks, r)
	}
}
