package event

import (
	"encoding/json"
	"reflect"
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

// with adds each metric as a field to fields, a JSON object that is not empty, of an event
// of the given type.
func (m Metrics) with(fields []byte, event reflect.Type) ([]byte, error) {
	// Not the names in fields: those of zero values may be missing there, but a reader
	// would still take a metric for them.
	names := []string{"event"}
	for i := range event.NumField() {
		name, _, _ := strings.Cut(event.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
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
	return e.Metrics.with(fields, reflect.TypeFor[Eval]())
}

// MarshalJSON implements json.Marshaler.
func (e *Result) MarshalJSON() ([]byte, error) {
	type plain Result
	fields, err := json.Marshal((*plain)(e))
	if err != nil {
		return nil, err
	}
	return e.Metrics.with(fields, reflect.TypeFor[Result]())
}
