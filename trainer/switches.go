package trainer

import (
	"fmt"
	"strconv"
	"strings"
)

// A Switch is planned in advance: a strategy takes the steps from one on.
type Switch struct {
	Steps    int    // done before; at least 1
	Strategy string // name of a Choice
}

// ParseSwitches reads Switches such as "100:allreduce,200:ps-sync". Steps ascend.
func ParseSwitches(text string) ([]Switch, error) {
	var all []Switch
	before := 0
	for part := range strings.SplitSeq(text, ",") {
		at, name, _ := strings.Cut(part, ":")
		steps, err := strconv.Atoi(at)
		if err != nil || steps <= before || name == "" {
			return nil, fmt.Errorf("must be STEP:STRATEGY,... with ascending steps from 1, such as 100:allreduce,200:ps-sync, not %q", text)
		}
		all = append(all, Switch{Steps: steps, Strategy: name})
		before = steps
	}
	return all, nil
}
