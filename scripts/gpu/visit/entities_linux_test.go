package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The step fails if the training is too slow, if its losses are not those of the CPU, or if it
// prints none.
func TestEntities(t *testing.T) {
	const prints = `[[ $1 == data ]] && exit
loss=0.5 seconds=2
[[ $* == *"--device cuda"*dropout* ]] && loss=LOSS
[[ $* == *"--device cuda"* ]] && seconds=SECONDS
echo '{"event":"view"}'
echo "{\"event\":\"step\",\"step\":1,\"loss\":0.7,\"seconds\":1}"
echo "{\"event\":\"step\",\"step\":2,\"loss\":$loss,\"seconds\":$seconds}"`
	for _, c := range []struct{ name, script, fails string }{
		{"good", strings.NewReplacer("=LOSS", "=0.5009", "=SECONDS", "=4.9").Replace(prints), ""},
		{"slow", strings.NewReplacer("=LOSS", "=0.5", "=SECONDS", "=5.1").Replace(prints), "2 steps took 5.10 s, more than 5 s"},
		{"other losses", strings.NewReplacer("=LOSS", "=0.502", "=SECONDS", "=2").Replace(prints), "differ by up to 0.002"},
		{"silent", "true", "ner-cuda-1000: the training printed no steps"},
		{"broken", "[[ $1 == train ]]", "sentences: exit status 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, r := trial(t, map[string]string{"ringtrain": c.script}, time.Minute), &result{}
			v.trainings.entities(r)
			if c.fails == "" {
				require.Empty(t, r.Failures)
				require.Equal(t, 2, r.Passed)
				return
			}
			require.NotEmpty(t, r.Failures)
			require.Contains(t, r.Failures[0], c.fails)
		})
	}
}
