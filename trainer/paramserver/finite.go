package paramserver

import (
	"fmt"
	"math"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// finite returns an error if the loss or the gradient of this rank is not finite. It is for
// strategies whose servers do not see that.
func finite(g *collective.Group, p *nn.Params, s trainer.Step) error {
	what := ""
	if math.IsNaN(s.Loss) || math.IsInf(s.Loss, 0) {
		what = "loss"
	} else if bad := trainer.NotFinite(p); bad != 0 {
		what = "gradient of " + p.List[bad-1].Name
	}
	if what == "" {
		return nil
	}
	return fmt.Errorf("paramserver: the %s of step %d is not finite on rank %d (%s): lower the learn rate, or look at the data of that step",
		what, s.Index+1, g.Rank(), g.View().Name(g.Rank()))
}
