package launch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A Tag gives the same state as the Identity it was made from.
func TestTag(t *testing.T) {
	require.Regexp(t, `^[0-9a-z-]{10,60}$`, Self().Tag())
	require.Equal(t, Alive, TagState(Self().Tag()))
	self := Identity{Host: "a", Machine: "m", Boot: "b", Space: "s", PID: 1, Start: 5}
	inspect := func(pid int) (uint64, State) {
		if pid == 7 {
			return 100, Alive
		}
		return 0, Dead
	}
	for _, id := range []Identity{
		{Host: "a", Machine: "m", Boot: "b", Space: "s", PID: 7, Start: 100},
		{Host: "a", Machine: "m", Boot: "b", Space: "s", PID: 7, Start: 99},
		{Host: "a", Machine: "m", Boot: "b", Space: "s", PID: 7},
		{Host: "a", Machine: "m", Boot: "b", Space: "s", PID: 8, Start: 100},
		{Host: "a", Machine: "m", Boot: "c", Space: "s", PID: 7, Start: 100},
		{Host: "a", Machine: "m", Boot: "b", Space: "r", PID: 7, Start: 100},
		{Host: "a", Machine: "n", Boot: "c", Space: "s", PID: 7, Start: 100},
		{Host: "z", Machine: "m", Boot: "b", Space: "s", PID: 7, Start: 100},
	} {
		require.Equal(t, id.judge(self, inspect), judgeTag(id.Tag(), self, inspect), "%+v", id)
	}
	for _, no := range []string{"", "me-7", "a-b-c-d-e", self.Tag() + "-1"} {
		require.Equal(t, Unknown, judgeTag(no, self, inspect), no)
	}
}
