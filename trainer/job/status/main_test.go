package status

import (
	"os"
	"testing"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

func TestMain(m *testing.M) {
	os.Exit(collectivetest.InOwnDirectories(m).Run())
}
