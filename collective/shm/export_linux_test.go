package shm

// Reserving is Options in which room is made in another way.
func Reserving(reserve func(fd int, size int64) error) Options { return Options{reserve: reserve} }
