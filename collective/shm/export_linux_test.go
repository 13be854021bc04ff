package shm

// Reserving returns Options with another function that reserves memory.
func Reserving(reserve func(fd int, size int64) error) Options { return Options{reserve: reserve} }

// Unable returns Options of a rank that cannot share memory.
func Unable(why error) Options { return Options{cannot: why} }

// Reading makes ranks read large vectors, even if copies are faster here.
var Reading = reading
