package trainer

import (
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
)

// checkStatistics refuses what would change running statistics: they need the mean over all
// rows, exactly. way names the setting and says how to change it.
func checkStatistics(p *nn.Params, way string) error {
	q := p.Statistic()
	if q == nil {
		return nil
	}
	return fmt.Errorf("trainer: %s is a running statistic, the mean over all rows of a step; %s", q.Name, way)
}
