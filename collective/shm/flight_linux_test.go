package shm_test

import (
	"testing"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/shm"
)

func TestFlight(t *testing.T) { collectivetest.TestFlight(t, groups) }

func TestLateCaller(t *testing.T) { collectivetest.TestLateCaller(t, groups) }

func TestFlightMixed(t *testing.T) {
	collectivetest.TestFlight(t, func(t testing.TB, n int) []*collective.Group {
		views, transports := connect(t, n, twoHosts, shm.Options{})
		return collectivetest.Groups(t, views, transports, collective.Options{})
	})
}
