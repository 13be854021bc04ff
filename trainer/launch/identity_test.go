package launch

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSelfIsAlive(t *testing.T) {
	require.Equal(t, Alive, Self().State())
	require.Equal(t, Self(), Self())
}

func TestIdentityJSONRoundTrip(t *testing.T) {
	text, err := json.Marshal(Self())
	require.NoError(t, err)
	var read Identity
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, Self(), read)
	require.Equal(t, Alive, read.State())
}

// The state of a process depends on where it runs and on which process has its pid today.
func TestIdentityState(t *testing.T) {
	self := Identity{Host: "a", Machine: "m", Boot: "b", Space: "s", PID: 1, Start: 5}
	running := map[int]uint64{7: 100}
	inspect := func(pid int) (uint64, State) {
		if start, ok := running[pid]; ok {
			return start, Alive
		}
		return 0, Dead
	}
	change := func(f func(*Identity)) Identity {
		id := Identity{Host: "a", Machine: "m", Boot: "b", Space: "s", PID: 7, Start: 100}
		f(&id)
		return id
	}
	for _, c := range []struct {
		name string
		id   Identity
		want State
	}{
		{"there", change(func(*Identity) {}), Alive},
		{"gone", change(func(id *Identity) { id.PID = 8 }), Dead},
		{"reused pid", change(func(id *Identity) { id.Start = 99 }), Dead},
		{"no start time", change(func(id *Identity) { id.Start = 0 }), Alive},
		{"earlier boot", change(func(id *Identity) { id.Boot = "c" }), Dead},
		{"earlier boot, another container", change(func(id *Identity) { id.Boot, id.Space = "c", "r" }), Dead},
		{"another container", change(func(id *Identity) { id.Space = "r" }), Unknown},
		{"another host", change(func(id *Identity) { id.Host = "z" }), Unknown},
		{"another machine with that name", change(func(id *Identity) { id.Machine, id.Boot = "n", "c" }), Unknown},
		{"machine without an id with that name", change(func(id *Identity) { id.Machine, id.Boot = "", "c" }), Unknown},
		{"no process", Identity{Host: "a", Machine: "m", Boot: "b", Space: "s"}, Unknown},
		{"all processes", change(func(id *Identity) { id.PID = -1 }), Unknown},
	} {
		require.Equal(t, c.want, c.id.judge(self, inspect), c.name)
	}
}
