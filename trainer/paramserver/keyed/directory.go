package keyed

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/store"
)

// A directory says which server holds which key. The first server decides; clients
// remember.
type directory struct {
	servers map[string]int // by key; the index of a server
	bytes   []int          // by server
}

func newDirectory(servers int) *directory {
	return &directory{servers: make(map[string]int), bytes: make([]int, servers)}
}

// add notes that a server holds a key of so many bytes.
func (d *directory) add(key string, size, server int) {
	d.servers[key] = server
	d.bytes[server] += size
}

// assign returns the server of a key. A new key of so many bytes goes to the server that
// holds the fewest.
func (d *directory) assign(key string, size int) int {
	server, known := d.servers[key]
	if !known {
		server = slices.Index(d.bytes, slices.Min(d.bytes))
		d.add(key, size, server)
	}
	return server
}

// listing returns a line for each key, in order: its bytes, a space, and the key, which has
// no line break.
func listing(sizes map[string]int) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(sizes)) {
		fmt.Fprintln(&text, sizes[key], key)
	}
	return text.String()
}

// list adds the keys of a server's listing.
func (d *directory) list(text string, server int) error {
	for line := range strings.Lines(text) {
		number, key, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		size, err := strconv.Atoi(number)
		if err == nil {
			err = store.CheckKey(key)
		}
		if err != nil || size < 0 || size > store.MaxValue {
			return fmt.Errorf("server %d lists %q, which is no key: run the same version on every machine", server, line)
		}
		if other, twice := d.servers[key]; twice {
			return fmt.Errorf("servers %d and %d both hold %q: start one of them with a new store", other, server, key)
		}
		d.add(key, size, server)
	}
	return nil
}
