package store

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asServer makes the test binary a server of the directory in this variable, at the
// address in atAddr.
const (
	asServer = "RINGTRAIN_TEST_STORE_DIR"
	atAddr   = "RINGTRAIN_TEST_STORE_ADDR"
	withKey  = "RINGTRAIN_TEST_STORE_KEY" // a key file, or empty
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(asServer); dir != "" {
		os.Exit(serveProcess(dir, os.Getenv(atAddr)))
	}
	goleak.VerifyTestMain(m)
}
