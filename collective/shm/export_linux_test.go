package shm

// Reserving is Options in which room is made in another way.
func Reserving(reserve func(fd int, size int64) error) Options { return Options{reserve: reserve} }

// Unable is Options of a rank whose architecture cannot share memory.
func Unable(why error) Options { return Options{cannot: why} }
