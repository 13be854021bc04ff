package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func fillRegistry(t *testing.T) *Registry {
	r := NewRegistry()
	never := func(Args) (any, error) { t.Error("Fill must not call functions"); return nil, nil }
	require.NoError(t, r.Register("layers", "Net.v1", Func{Make: never, Params: []Param{
		{Name: "width", Type: Int, Required: true}, {Name: "rate", Type: Float, Default: .5}, {Name: "name", Type: String},
		{Name: "deep", Type: Bool, Default: true}, {Name: "depth", Type: Int, Default: 2}, {Name: "parts", Type: Any, Variadic: true},
	}}))
	return r
}

func TestFill(t *testing.T) {
	c, err := Parse("x.cfg", `[training]
steps = 3

[model]
@layers = "Net.v1"
rate = 0.25

[model.*.one]
@layers = "Net.v1"
width = 8
inline = [{"@layers": "Net.v1", "width": 1}]

[other]
`, nil)
	require.NoError(t, err)
	before := c.Text()
	filled, err := fillRegistry(t).Fill(c)
	require.NoError(t, err)
	require.Equal(t, `[training]
steps = 3

[model]
@layers = "Net.v1"
rate = 0.25
name = null
deep = true
depth = 2

[model.*]

[model.*.one]
@layers = "Net.v1"
width = 8
inline = [{"@layers": "Net.v1", "width": 1, "rate": 0.5, "name": null, "deep": true, "depth": 2}]
rate = 0.5
name = null
deep = true
depth = 2

[other]
`, filled.Text())
	require.Equal(t, before, c.Text(), "Fill must not change the config")
	again, err := fillRegistry(t).Fill(filled)
	require.NoError(t, err)
	require.Equal(t, filled.Text(), again.Text())
}

func TestFillNamesUnknownFunctions(t *testing.T) {
	c, err := Parse("x.cfg", "[a]\n[a.model]\n@layers = \"Nat.v1\"\n", nil)
	require.NoError(t, err)
	_, err = fillRegistry(t).Fill(c)
	require.ErrorContains(t, err, "x.cfg:3")
	require.ErrorContains(t, err, `did you mean "Net.v1"?`)
}
