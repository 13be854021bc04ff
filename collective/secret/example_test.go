package secret_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ringtrain/ringtrain/collective/secret"
)

// One process creates the key file. Every process with a copy can prove its identity and
// verify the others.
func Example() {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("ringtrain-example-%d.key", os.Getpid()))
	if err := secret.WriteFile(path, secret.New()); err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(path)

	k, err := secret.ReadFile(path)
	fmt.Println(k, err)
	id, err := k.Identity("vm1/0", 4711)
	fmt.Println(id.Server().SessionTicketsDisabled, err)
	// Output:
	// a secret key <nil>
	// true <nil>
}
