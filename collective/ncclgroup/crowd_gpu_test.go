//go:build gpu && cgo && linux

package ncclgroup

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nccl"
)

// tableTime limits the calls of the table. On a device that processes share,
// each call takes milliseconds.
const tableTime = 2 * time.Minute

// versions returns the NCCL versions to test with. On a device that is the installed
// one. The emulator provides several, which differ in how they let ranks share a
// device.
func versions(t *testing.T) []nccl.Version {
	emulated(t)
	if real() {
		v, err := nccl.GetVersion()
		require.NoError(t, err)
		return []nccl.Version{v}
	}
	return []nccl.Version{nccl.Oldest, nccl.NewVersion(2, 20, 5), nccl.NewVersion(2, 29, 7), nccl.NewVersion(2, 30, 7)}
}

// passing returns the variables that make the emulator have one device and pass for a
// version of NCCL.
func passing(v nccl.Version) []string {
	if real() {
		return nil
	}
	return []string{fmt.Sprint("RINGTRAIN_EMULATOR_NCCL=", v), "RINGTRAIN_EMULATOR_DEVICES=1"}
}

// Among processes that share a device, NCCL gives the correct result of every
// operation, in every version.
func TestOperationsInProcesses(t *testing.T) {
	all := versions(t)
	for i, v := range all {
		sizes := []int{1, 2, 4}
		if i > 0 && i < len(all)-1 { // versions in between differ only in how ranks share a device
			sizes = []int{2}
		}
		for _, n := range sizes {
			t.Run(fmt.Sprintf("NCCL %v, %d ranks", v, n), func(t *testing.T) {
				ps := jobs(t, "table", n, func(rank int) []string { return append(passing(v), sharing(v, rank)...) })
				for _, p := range ps {
					require.Equal(t, fmt.Sprint(len(trials())), p.expectWithin(tableTime, "table "))
				}
				quit(t, ps)
			})
		}
	}
}

// NCCL refuses two ranks on one device, in its own words, unless they set the variables
// that their version understands.
func TestSharedDevice(t *testing.T) {
	emulated(t)
	if real() {
		t.Skip("only the emulator can pass for other versions of NCCL")
	}
	const older, newer = "Duplicate GPU detected : rank", "Multiple Ranks are using the same GPU/Partition"
	separate := func(rank int) string { return fmt.Sprintf("NCCL_HOSTID=rank%d", rank) }
	together := func(int) string { return "NCCL_HOSTID=all" }
	allowed := func(int) string { return multiRank + "=1" }
	for _, c := range []struct {
		name, version, refused string
		variable               func(rank int) string
	}{
		{"the oldest, one host", "2.19.3", older, together},
		{"the oldest, separate hosts", "2.19.3", "", separate},
		{"2.29, one host", "2.29.7", older, together},
		{"2.29, the variable is unknown", "2.29.7", older, allowed},
		{"2.30.2, the variable is unknown", "2.30.2", older, allowed},
		{"2.30.3, not set", "2.30.3", newer, together},
		{"2.30.3, turned off", "2.30.3", newer, func(int) string { return multiRank + "=0" }},
		{"2.30.3, allowed", "2.30.3", "", allowed},
		{"2.30.3, separate hosts", "2.30.3", "", separate},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := []string{"RINGTRAIN_EMULATOR_NCCL=" + c.version, "RINGTRAIN_EMULATOR_DEVICES=1"}
			ps := jobs(t, "calls", 2, func(rank int) []string { return append(v[:2:2], c.variable(rank)) })
			for _, p := range ps {
				if c.refused != "" {
					require.Contains(t, p.expect("end "), c.refused)
					continue
				}
				require.Equal(t, "2", p.expect("group "))
			}
			if c.refused == "" {
				quit(t, ps)
			}
		})
	}
}

// Where ranks of one process cannot share a device, the tests are skipped and do not
// pass. With a newer NCCL they run.
func TestSkipsAreNoPasses(t *testing.T) {
	emulated(t)
	if real() {
		t.Skip("needs the emulator")
	}
	for version, c := range map[nccl.Version]struct {
		want  string
		tests []string
	}{
		nccl.NewVersion(2, 29, 7): {"SKIP", []string{"TestOperations", "TestSub", "TestQueue", "TestRingOrder"}},
		shared:                    {"PASS", []string{"TestSub", "TestQueue", "TestRingOrder"}},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^("+strings.Join(c.tests, "|")+")$")
		cmd.Env = append(append(os.Environ(), passing(version)...), "RINGTRAIN_REQUIRE_GPU=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		for _, test := range c.tests {
			require.Contains(t, string(out), "\n--- "+c.want+": "+test+" ", "NCCL %v", version)
		}
	}
}
