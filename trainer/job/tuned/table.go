package tuned

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// Format identifies the format of the files.
const Format = "ringtrain-tune/1"

// A Fingerprint says where a table was measured. The table is valid only there.
type Fingerprint struct {
	Ranks     int    `json:"ranks"`
	Hosts     []int  `json:"hosts"` // of each rank; equal numbers mean the same host
	Transport string `json:"transport"`
	Streams   int    `json:"streams"` // most connections for one message; the best segment size depends on it
	CPU       string `json:"cpu"`     // of rank 0's machine
	Version   string `json:"version"` // of the program
	Order     string `json:"order"`   // that the measured methods keep
}

// Name returns the file name of the table in the cache.
func (f Fingerprint) Name() string {
	text, _ := json.Marshal(f) // cannot fail for this type
	sum := sha256.Sum256(text)
	return "tune-" + hex.EncodeToString(sum[:8]) + ".json"
}

// Differs names the fields in which two fingerprints differ; "" if they are equal.
func (f Fingerprint) Differs(from Fingerprint) string {
	var in []string
	for _, x := range []struct {
		name string
		same bool
	}{
		{"ranks", f.Ranks == from.Ranks}, {"hosts", slices.Equal(f.Hosts, from.Hosts)}, {"transport", f.Transport == from.Transport},
		{"streams", f.Streams == from.Streams}, {"CPU", f.CPU == from.CPU}, {"version", f.Version == from.Version}, {"order", f.Order == from.Order},
	} {
		if !x.same {
			in = append(in, x.name)
		}
	}
	return strings.Join(in, ", ")
}

// file is the stored form of a table.
type file struct {
	Format      string      `json:"format"`
	Fingerprint Fingerprint `json:"fingerprint"`
	Entries     []entry     `json:"entries"`
}

type entry struct {
	Bytes     int     `json:"bytes"`
	Algorithm string  `json:"algorithm"`
	Segment   int     `json:"segment_bytes"`
	Predicted float64 `json:"predicted_us"`
	Measured  float64 `json:"measured_us"`
}

// Encode returns the content of a file.
func Encode(f Fingerprint, t *schedule.Table) []byte {
	out := file{Format: Format, Fingerprint: f, Entries: []entry{}}
	for _, e := range t.Entries {
		out.Entries = append(out.Entries, entry{
			Bytes: e.Bytes, Algorithm: e.Method.String(), Segment: e.Segment,
			Predicted: float64(e.Predicted.Nanoseconds()) / 1e3, Measured: float64(e.Measured.Nanoseconds()) / 1e3,
		})
	}
	text, _ := json.MarshalIndent(out, "", "  ") // cannot fail: all numbers are finite
	return append(text, '\n')
}

// Decode parses the content of a file. It returns an error for other formats and for
// entries that cannot be used.
func Decode(text []byte) (Fingerprint, *schedule.Table, error) {
	var in file
	if err := json.Unmarshal(text, &in); err != nil {
		return Fingerprint{}, nil, err
	}
	if in.Format != Format {
		return Fingerprint{}, nil, fmt.Errorf("its format is %q, not %q", in.Format, Format)
	}
	if len(in.Entries) == 0 {
		return Fingerprint{}, nil, errors.New("it has no entries")
	}
	t := &schedule.Table{Ranks: in.Fingerprint.Ranks}
	for i, e := range in.Entries {
		m, err := schedule.ParseMethod(e.Algorithm)
		if err != nil {
			return Fingerprint{}, nil, err
		}
		if e.Bytes < 1 || e.Segment < 1 || e.Measured <= 0 || i > 0 && e.Bytes <= in.Entries[i-1].Bytes {
			return Fingerprint{}, nil, fmt.Errorf("entry %d is invalid: sizes must increase, and sizes and measured times must be positive", i+1)
		}
		t.Entries = append(t.Entries, schedule.Entry{Bytes: e.Bytes, Method: m, Segment: e.Segment, Measured: max(1, nanoseconds(e.Measured)), Predicted: nanoseconds(e.Predicted)})
	}
	return in.Fingerprint, t, nil
}

// nanoseconds converts microseconds of a file. It rounds, because 1.001 * 1000 is less
// than 1001 as a float64.
func nanoseconds(us float64) time.Duration { return time.Duration(math.Round(us * 1e3)) }
