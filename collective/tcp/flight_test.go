package tcp_test

import (
	"testing"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

func TestFlight(t *testing.T) { collectivetest.TestFlight(t, groups) }

func TestLateCaller(t *testing.T) { collectivetest.TestLateCaller(t, groups) }
