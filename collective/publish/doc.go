// Package publish stores words that others read without waiting until they can
// see them, and loads words after everything else.
//
// sync/atomic's stores wait for that on amd64, by a locked instruction, and for
// every store before them: after one to a line that another core holds that is
// 100 ns and more, in which the processor does not even begin to load what comes
// next. What a call over shared memory costs is little more than one such way, so
// it must not go there and back before it looks at the others.
package publish
