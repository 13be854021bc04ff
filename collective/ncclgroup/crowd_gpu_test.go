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

// tableTime is how long the calls of the table may take: on a device that processes
// share in turns, each takes milliseconds.
const tableTime = 2 * time.Minute

// versions are those of NCCL that the tests can run with: of a device the one that is
// there, and of the emulator some that differ in what they let ranks share.
func versions(t *testing.T) []nccl.Version {
	emulated(t)
	if real() {
		v, err := nccl.GetVersion()
		require.NoError(t, err)
		return []nccl.Version{v}
	}
	return []nccl.Version{nccl.Oldest, nccl.NewVersion(2, 20, 5), nccl.NewVersion(2, 29, 7), nccl.NewVersion(2, 30, 7)}
}

// passing are the variables of the emulator with one device, as a version of NCCL.
func passing(v nccl.Version) []string {
	if real() {
		return nil
	}
	return []string{fmt.Sprint("RINGTRAIN_EMULATOR_NCCL=", v), "RINGTRAIN_EMULATOR_DEVICES=1"}
}

// Every operation gives what it is to give, by NCCL, among processes that share a
// device, with any NCCL.
func TestOperationsInProcesses(t *testing.T) {
	all := versions(t)
	for i, v := range all {
		sizes := []int{1, 2, 4}
		if i > 0 && i < len(all)-1 { // those between differ in what they let ranks share alone
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

// Two ranks on one device are refused, by NCCL's own words, unless they are told what
// their NCCL understands.
func TestSharedDevice(t *testing.T) {
	emulated(t)
	if real() {
		t.Skip("only the emulator can pass for other versions of NCCL")
	}
	const older, newer = "Duplicate GPU detected : rank", "Multiple Ranks are using the same GPU/Partition"
	apart := func(rank int) string { return fmt.Sprintf("NCCL_HOSTID=rank%d", rank) }
	together := func(int) string { return "NCCL_HOSTID=all" }
	allowed := func(int) string { return multiRank + "=1" }
	for _, c := range []struct {
		name, version, refused string
		variable               func(rank int) string
	}{
		{"the oldest, one host", "2.14.3", older, together},
		{"the oldest, hosts of their own", "2.14.3", "", apart},
		{"2.29, one host", "2.29.7", older, together},
		{"2.29, does not know the variable", "2.29.7", older, allowed},
		{"2.30.2, does not know it either", "2.30.2", older, allowed},
		{"2.30.3, without it", "2.30.3", newer, together},
		{"2.30.3, turned off", "2.30.3", newer, func(int) string { return multiRank + "=0" }},
		{"2.30.3, allowed", "2.30.3", "", allowed},
		{"2.30.3, hosts of their own", "2.30.3", "", apart},
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

// What cannot run on a device is skipped, and is no pass: with an NCCL of which ranks
// of one process cannot share it. With a newer one it runs.
func TestSkipsAreNoPasses(t *testing.T) {
	emulated(t)
	if real() {
		t.Skip("it takes a device that is not there")
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
