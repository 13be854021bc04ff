// Package publish stores words that others read, without waiting until the stores are
// visible, and loads words after all earlier loads. It also fetches the lines of memory that
// is about to be written.
//
// The stores of sync/atomic use a locked instruction on amd64. It waits until this store
// and all earlier ones are visible to others, and the processor starts no later load
// before that. If another core holds the cache line, this takes 100 ns or more. A call
// over shared memory takes little more than one such delay, so it must not wait for its
// own stores before it loads those of the others.
package publish
