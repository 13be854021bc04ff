package tuned

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// measured is where the tables of these tests were measured.
func measured() Fingerprint {
	return Fingerprint{Ranks: 2, Hosts: []int{0, 0}, Transport: "tcp", Streams: 1, CPU: "x", Version: "v1", Order: "ring"}
}

// A table is valid only where everything in its fingerprint is the same. Each field counts
// for the name of the file and is named in the error.
func TestEveryFieldOfAFingerprintCounts(t *testing.T) {
	names := map[string]string{"Ranks": "ranks", "Hosts": "hosts", "Transport": "transport", "Streams": "streams", "CPU": "CPU", "Version": "version", "Order": "order"}
	fields := reflect.TypeFor[Fingerprint]()
	require.Len(t, names, fields.NumField(), "a new field belongs into Differs, too")
	for i := range fields.NumField() {
		other := measured()
		switch f := reflect.ValueOf(&other).Elem().Field(i); f.Kind() {
		case reflect.Int:
			f.SetInt(7)
		case reflect.String:
			f.SetString("other")
		default:
			other.Hosts = []int{0, 1}
		}
		name := names[fields.Field(i).Name]
		require.Equal(t, name, measured().Differs(other))
		require.Equal(t, name, other.Differs(measured()))
		require.NotEqual(t, measured().Name(), other.Name(), name)
	}
	require.Empty(t, measured().Differs(measured()))
	require.Regexp(t, `^tune-[0-9a-f]{16}\.json$`, measured().Name())
}

// A file that was measured elsewhere is refused, with all the differences, whether the user
// named it or it is in the cache under a name that is not its own.
func TestLoadRefusesOthers(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(data.EnvCache, cache)
	other := measured()
	other.CPU, other.Version = "y", "v2"
	path := filepath.Join(cache, measured().Name())
	require.NoError(t, os.WriteFile(path, Encode(other, table(2)), 0o600))
	for _, named := range []string{Auto, path} {
		_, got, err := (&Choice{Table: named}).load(measured())
		require.EqualError(t, err, "--tune: "+path+" was measured in another setting (different: CPU, version): measure again with ringtrain tune, or use --tune off")
		require.Nil(t, got)
	}
}

// A file that is cut off, empty, a directory, or of another version is refused by --tune
// FILE before anything starts, and by auto when it is found. The error names the file.
func TestLoadRefusesCorruptFiles(t *testing.T) {
	whole := Encode(measured(), table(2))
	for name, text := range map[string]string{
		"empty":           "",
		"not JSON":        "\x00\x01",
		"cut off":         string(whole[:len(whole)/2]),
		"another version": strings.Replace(string(whole), "ringtrain-tune/1", "ringtrain-tune/2", 1),
		"two objects":     string(whole) + string(whole),
		"no entries":      strings.Replace(string(whole), `"entries": [`, `"entries": [], "x": [`, 1),
		"not a number":    strings.Replace(string(whole), `"bytes": 4,`, `"bytes": "4",`, 1),
		"negative time":   strings.Replace(string(whole), `"measured_us": 1`, `"measured_us": -1`, 1),
		"no algorithm":    strings.Replace(string(whole), `"algorithm": "ring"`, `"algorithm": ""`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, string(whole), text)
			cache := t.TempDir()
			t.Setenv(data.EnvCache, cache)
			path := filepath.Join(cache, measured().Name())
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			require.ErrorContains(t, (&Choice{Table: path}).CheckTable(2, 1), "--tune: "+path+" is not a table of this version: ")
			for _, named := range []string{Auto, path} {
				_, got, err := (&Choice{Table: named}).load(measured())
				require.ErrorContains(t, err, "--tune: "+path+" is not a table of this version: ")
				require.NotContains(t, err.Error(), "\n")
				require.Nil(t, got)
			}
		})
	}
	require.ErrorContains(t, (&Choice{Table: t.TempDir()}).CheckTable(2, 1), "is a directory")
}

// Entries whose sizes do not increase are refused: which one counts would be a guess.
func TestDecodeRefusesUnsortedEntries(t *testing.T) {
	text := Encode(measured(), table(2))
	var f file
	require.NoError(t, json.Unmarshal(text, &f))
	for _, bytes := range []int{4, 3} {
		f.Entries[1].Bytes = bytes
		text, err := json.Marshal(f)
		require.NoError(t, err)
		_, _, err = Decode(text)
		require.ErrorContains(t, err, "entry 2 is invalid")
	}
}

// A time below a nanosecond is one: a table with a time of 0 would win every comparison.
func TestShortTimes(t *testing.T) {
	text := strings.Replace(string(Encode(measured(), table(2))), `"measured_us": 1,`, `"measured_us": 1e-9,`, 1)
	text = strings.Replace(text, `"measured_us": 1`+"\n", `"measured_us": 1e-9`+"\n", 1)
	_, got, err := Decode([]byte(text))
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Entries[0].Measured)
}

// The fingerprint of a group says how its ranks are connected.
func TestHere(t *testing.T) {
	g := collectivetest.Machines(t, 2, 2)[0]
	here := Here(g, collective.AnyOrder, true)
	require.Equal(t, 4, here.Ranks)
	require.Equal(t, "any", here.Order)
	require.NotEmpty(t, here.CPU)
	require.NotEmpty(t, here.Version)
	require.NotEqual(t, here.Name(), Here(g, collective.RingOrder, true).Name())
}
