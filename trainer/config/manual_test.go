package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/config"
)

func manual(t *testing.T) config.Manual {
	r := config.NewRegistry()
	never := func(config.Args) (any, error) { return nil, nil }
	rate := config.Param{Name: "rate", Form: "number or list", Default: .5, Doc: "how fast"}
	for name, f := range map[string]config.Func{
		"Net.v1": {Make: never, Doc: "a net", Params: []config.Param{{Name: "width", Type: config.Int, Required: true, Doc: "units"}, rate}},
		"Web.v1": {Make: never, Doc: "a web", Params: []config.Param{rate, {Name: "width", Type: config.Int, Default: 3, Doc: "threads"}}},
	} {
		require.NoError(t, r.Register("layers", name, f))
	}
	require.NoError(t, r.Register("empty", "None.v1", config.Func{Make: never, Doc: "nothing"}))
	return config.Manual{Registry: r, Chapters: []config.Chapter{
		{Section: "run", Doc: "how to run", Keys: []config.Key{
			{Name: "steps", Type: config.Int, Least: 1, Default: 7, Doc: "how far", Option: "--steps", Origin: "here"},
			{Name: "mode", Type: config.String, Default: "fast", Form: "fast or slow", Doc: "how", Origin: "there"},
			{Name: "cores", Type: config.Int, Absent: "all", Doc: "with what", Origin: "there"},
		}},
		{Section: "model", Doc: "what to run", Calls: "layers"},
	}}
}

func TestManualReads(t *testing.T) {
	m := manual(t)
	c := parse(t, "[run]\nsteps = 3\n[other]\nx = 1")
	require.NoError(t, m.Check(c))
	for path, want := range map[string]int{"run.steps": 3, "run.cores": 0} {
		n, err := m.Int(c, path)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	n, err := m.Int(parse(t, "[run]\nsteps = null"), "run.steps")
	require.NoError(t, err)
	require.Equal(t, 7, n)
	s, err := m.String(c, "run.mode")
	require.NoError(t, err)
	require.Equal(t, "fast", s)

	_, err = m.Int(parse(t, "[run]\nsteps = 0"), "run.steps")
	require.EqualError(t, err, "test.cfg:2: run.steps: must be at least 1, not 0")
	require.ErrorContains(t, m.Check(parse(t, "[run]\nstep = 1")), `test.cfg:2: section [run] has no key "step"; did you mean "steps"?`)
	for _, path := range []string{"run.stepz", "run.mode", "rum.steps", "steps"} {
		_, err = m.Int(c, path)
		require.ErrorContains(t, err, "config: the manual has no whole number "+path)
	}
	_, err = m.String(c, "run.steps")
	require.ErrorContains(t, err, "the manual has no string run.steps")
}

// A section that nothing reads is the user's own, unless its name is probably a
// misspelled one that the config lacks.
func TestMisspelledSections(t *testing.T) {
	m := manual(t)
	require.ErrorContains(t, m.Check(parse(t, "[run]\n[modle]\nx = 1")), `test.cfg:2: nothing reads section [modle]; did you mean "model"?`)
	require.NoError(t, m.Check(parse(t, "[run]\n[model]\n[modle]\nx = 1")), "a model is there")
	for _, text := range []string{
		"[run]\nsteps = ${modle.x}\n[modle]\nx = 1", "[run]\nsteps = ${modle.net:x}\n[modle]\n[modle.net]\nx = 1", "[run]\n[modle]\n[paths]\nall = ${modle}",
	} {
		require.NoError(t, m.Check(parse(t, text)), "a reference reads the section: %s", text)
	}
	require.ErrorContains(t, m.Check(parse(t, "[run]\n[modle]\nx = 1\ny = ${modle.x}\nz = ${x}")), "nothing reads section [modle]")
	require.NoError(t, m.Check(parse(t, "[paths]\nx = 1")))
}

func TestExplain(t *testing.T) {
	for name, want := range map[string]string{
		"": `Sections:
  [run]    how to run
  [model]  what to run

Functions:
  @empty   None.v1
  @layers  Net.v1, Web.v1
`,
		"run": `[run]: how to run
  KEY    TYPE                      DEFAULT  MEANING
  steps  whole number, at least 1  7        how far
  mode   fast or slow              "fast"   how
  cores  whole number, at least 0  all      with what
`,
		"run.steps": `run.steps: how far
  type     whole number, at least 1
  default  7
  set by   [run] of the config, or --run.steps VALUE; --steps wins over both
  from     here
`,
		"model": `[model]: what to run
  KEY      TYPE            DEFAULT   MEANING
  @layers  name            required  Net.v1, Web.v1
  width    whole number    required  units (Net.v1)
  rate     number or list  0.5       how fast
  width    whole number    3         threads (Web.v1)
`,
		"model.rate": `model.rate: how fast
  type     number or list
  default  0.5
  set by   [model] of the config, or --model.rate VALUE
  from     Net.v1, Web.v1
`,
		"model.width": `model.width: units
  type     whole number
  default  required
  set by   [model] of the config, or --model.width VALUE
  from     Net.v1

model.width: threads
  type     whole number
  default  3
  set by   [model] of the config, or --model.width VALUE
  from     Web.v1
`,
		"model.@layers": `@layers names one of these functions:
  Net.v1  a net
  Web.v1  a web
`,
		"empty": `@empty names one of these functions:
  None.v1  nothing
`,
		"Net.v1": `@layers = "Net.v1": a net
  ARGUMENT  TYPE            DEFAULT   MEANING
  width     whole number    required  units
  rate      number or list  0.5       how fast
`,
		"None.v1": `@empty = "None.v1": nothing
  It takes no arguments.
`,
	} {
		got, err := manual(t).Explain(name)
		require.NoError(t, err, name)
		require.Equal(t, want, got)
	}
	for name, want := range map[string]string{
		"run.step":  `config explain: there is no section, key or function "run.step"; did you mean "run.steps"?`,
		"net":       `there is no section, key or function "net"; did you mean "Net.v1"?`,
		"Nets.v1":   `did you mean "Net.v1"?`,
		"modle":     `did you mean "model"?`,
		"zzzzz":     `config explain: there is no section, key or function "zzzzz"; run it without a KEY to list all sections and functions`,
		"\x1b[2J\n": `config explain: there is no section, key or function "\x1b[2J\n"`,
		".":         `"."`,
		"model.":    `"model."`,
	} {
		_, err := manual(t).Explain(name)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// Explain accepts every name in Names.
func TestExplainAcceptsAllNames(t *testing.T) {
	m := manual(t)
	require.Subset(t, m.Names(), []string{"run", "run.mode", "model", "model.rate", "@layers", "Web.v1"})
	for _, name := range m.Names() {
		text, err := m.Explain(name)
		require.NoError(t, err, name)
		require.NotEmpty(t, text)
	}
}
