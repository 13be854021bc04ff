package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// TuneFormat is what the files of tables begin with; another number is another
// format.
const TuneFormat = "ringtrain-tune/1"

// A Fingerprint says where a table was measured. It is of use only there.
type Fingerprint struct {
	Ranks     int    `json:"ranks"`
	Hosts     []int  `json:"hosts"` // of each rank; equal numbers are equal hosts
	Transport string `json:"transport"`
	Streams   int    `json:"streams"` // connections that a message travels over at most: which segments are cut depends on it
	CPU       string `json:"cpu"`     // of rank 0's machine
	Version   string `json:"version"` // of the program
	Order     string `json:"order"`   // of which methods were tried
}

// Name is a file name for the table of a fingerprint.
func (f Fingerprint) Name() string {
	text, _ := json.Marshal(f) // cannot fail
	sum := sha256.Sum256(text)
	return "tune-" + hex.EncodeToString(sum[:8]) + ".json"
}

// Differs says in what two fingerprints differ; "" for nothing.
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

// tuneFile is a table as it is stored.
type tuneFile struct {
	Format      string      `json:"format"`
	Fingerprint Fingerprint `json:"fingerprint"`
	Entries     []tuneEntry `json:"entries"`
}

type tuneEntry struct {
	Bytes     int     `json:"bytes"`
	Algorithm string  `json:"algorithm"`
	Segment   int     `json:"segment_bytes"`
	Predicted float64 `json:"predicted_us"`
	Measured  float64 `json:"measured_us"`
}

// EncodeTable is a table as a file.
func EncodeTable(f Fingerprint, t *schedule.Table) []byte {
	file := tuneFile{Format: TuneFormat, Fingerprint: f, Entries: []tuneEntry{}}
	for _, e := range t.Entries {
		file.Entries = append(file.Entries, tuneEntry{
			Bytes: e.Bytes, Algorithm: e.Method.String(), Segment: e.Segment,
			Predicted: float64(e.Predicted.Nanoseconds()) / 1e3, Measured: float64(e.Measured.Nanoseconds()) / 1e3,
		})
	}
	text, _ := json.MarshalIndent(file, "", "  ") // has no number that JSON lacks
	return append(text, '\n')
}

// DecodeTable reads what EncodeTable made. Anything else is an error.
func DecodeTable(text []byte) (Fingerprint, *schedule.Table, error) {
	var file tuneFile
	if err := json.Unmarshal(text, &file); err != nil {
		return Fingerprint{}, nil, err
	}
	if file.Format != TuneFormat {
		return Fingerprint{}, nil, fmt.Errorf("its format is %q, not %q", file.Format, TuneFormat)
	}
	if len(file.Entries) == 0 {
		return Fingerprint{}, nil, errors.New("it has no entries")
	}
	t := &schedule.Table{Ranks: file.Fingerprint.Ranks}
	for i, e := range file.Entries {
		m, err := schedule.ParseMethod(e.Algorithm)
		if err != nil {
			return Fingerprint{}, nil, err
		}
		if e.Bytes < 1 || e.Segment < 1 || e.Measured <= 0 || i > 0 && e.Bytes <= file.Entries[i-1].Bytes {
			return Fingerprint{}, nil, fmt.Errorf("entry %d cannot be: sizes grow, and all numbers are positive", i+1)
		}
		t.Entries = append(t.Entries, schedule.Entry{Bytes: e.Bytes, Method: m, Segment: e.Segment, Measured: micro(e.Measured), Predicted: time.Duration(e.Predicted * 1e3)})
	}
	return file.Fingerprint, t, nil
}
