package event

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Metrics are the results of an evaluation besides the loss, in the order of columns. In
// JSON they are a list, and each is also a field of the event with the metric's name,
// unless the event has one of that name, in upper or lower case:
//
//	{"event":"eval","accuracy":0.93,"step":10,"loss":0.2,"metrics":[{"name":"accuracy","value":0.93,"fraction":true}],"seconds":1.2}
type Metrics []Metric

// A Metric is one result of an evaluation.
type Metric struct {
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
	Detail   bool    `json:"detail,omitempty"`   // too detailed for screens
	Fraction bool    `json:"fraction,omitempty"` // of 1, so that screens may show it in percent
}

// Shown returns the metrics for a screen.
func (m Metrics) Shown() Metrics {
	return slices.DeleteFunc(slices.Clone(m), func(one Metric) bool { return one.Detail })
}

// Value returns the value of a metric; 0 if there is none of that name.
func (m Metrics) Value(name string) float64 {
	for _, one := range m {
		if one.Name == name {
			return one.Value
		}
	}
	return 0
}

// with adds each metric as a field to fields, a JSON object that is not empty.
func (m Metrics) with(fields []byte) ([]byte, error) {
	taken := map[string]json.RawMessage{"event": nil}
	if err := json.Unmarshal(fields, &taken); err != nil {
		return nil, err
	}
	names := slices.Collect(maps.Keys(taken))
	out := []byte("{")
	for _, one := range m {
		// Readers in Go ignore case: they would take Step for step.
		if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, one.Name) }) {
			continue
		}
		names = append(names, one.Name)
		name, err := json.Marshal(one.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(one.Value)
		if err != nil {
			return nil, err
		}
		out = append(append(append(append(out, name...), ':'), value...), ',')
	}
	return append(out, fields[1:]...), nil
}

// MarshalJSON implements json.Marshaler.
func (e *Eval) MarshalJSON() ([]byte, error) {
	type plain Eval
	fields, err := json.Marshal((*plain)(e))
	if err != nil {
		return nil, err
	}
	return e.Metrics.with(fields)
}

// MarshalJSON implements json.Marshaler.
func (e *Result) MarshalJSON() ([]byte, error) {
	type plain Result
	fields, err := json.Marshal((*plain)(e))
	if err != nil {
		return nil, err
	}
	return e.Metrics.with(fields)
}
