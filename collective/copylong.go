package collective

import "runtime"

// copiedAtOnce is long enough that the pause after it costs nothing, and short enough that
// no other goroutine waits long.
const copiedAtOnce = 1 << 20

// copyLong copies src to dst, which is as long. The runtime cannot interrupt a copy, and
// while the garbage collector waits for it, no goroutine of this process runs. Copying
// gigabytes at once would stop heartbeats for so long that other ranks believe this
// one dead.
func copyLong(dst, src []byte) {
	for len(src) > copiedAtOnce {
		n := copy(dst, src[:copiedAtOnce])
		dst, src = dst[n:], src[n:]
		runtime.Gosched()
	}
	copy(dst, src)
}
