package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// A Record is the main timing of a row, for programs.
type Record struct {
	Op         string  `json:"op"`
	DType      string  `json:"dtype"` // as Go spells it
	Ranks      int     `json:"ranks"`
	Transport  string  `json:"transport"`
	Size       int     `json:"size"`    // bytes
	Time       float64 `json:"time_us"` // median
	Mean       float64 `json:"mean_us"`
	P99        float64 `json:"p99_us"`
	Read       float64 `json:"read_us"` // median of a call plus one comparison of its result; 0 without checks
	AlgBW      float64 `json:"algbw"`   // 1e9 bytes per second
	BusBW      float64 `json:"busbw"`   // 1e9 bytes per second
	Wrong      *int64  `json:"wrong"`   // both placements; null without checks
	Iterations int     `json:"iterations"`

	// The plan of an allreduce; empty for other operations.
	Algorithm string  `json:"algorithm,omitempty"`
	Segment   int     `json:"segment_bytes,omitempty"` // maximum of a message
	Streams   int     `json:"streams,omitempty"`       // connections that carry the longest message
	Predicted float64 `json:"predicted_us,omitempty"`
	Why       string  `json:"why,omitempty"`
}

// Records converts rows. The caller chooses the name of the transport.
func Records(rows []Row, transport string) []Record {
	records := make([]Record, len(rows))
	for i, r := range rows {
		t := r.Main()
		records[i] = Record{
			Op: r.Op, DType: r.DType.String(), Ranks: r.Ranks, Transport: transport, Size: r.Size,
			Time: t.Median, Mean: t.Mean, P99: t.P99, Read: t.Read, AlgBW: r.AlgBW(t), BusBW: r.BusBW(t), Iterations: t.Iterations,
		}
		if p := r.Plan; p.Method != 0 {
			records[i].Algorithm, records[i].Segment, records[i].Why = p.Method.String(), p.Segment*r.DType.Size(), p.Why
			records[i].Streams = p.Streams
			records[i].Predicted = float64(p.Predicted.Nanoseconds()) / 1e3
		}
		if t.Wrong >= 0 {
			wrong := r.Wrong()
			records[i].Wrong = &wrong
		}
	}
	return records
}

// WriteJSON writes records as one array.
func WriteJSON(w io.Writer, records []Record) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(records)
}

// WriteCSV writes records as comma-separated values, with JSON's names. A null is an
// empty field.
func WriteCSV(w io.Writer, records []Record) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"op", "dtype", "ranks", "transport", "size", "time_us", "mean_us", "p99_us", "read_us", "algbw", "busbw", "wrong", "iterations"}) // Error tells
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, r := range records {
		wrong := ""
		if r.Wrong != nil {
			wrong = fmt.Sprint(*r.Wrong)
		}
		_ = out.Write([]string{
			r.Op, r.DType, strconv.Itoa(r.Ranks), r.Transport, strconv.Itoa(r.Size),
			number(r.Time), number(r.Mean), number(r.P99), number(r.Read), number(r.AlgBW), number(r.BusBW), wrong, strconv.Itoa(r.Iterations),
		})
	}
	out.Flush()
	return out.Error()
}
