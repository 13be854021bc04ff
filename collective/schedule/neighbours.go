package schedule

// Crowded reports whether a host has more than one rank. hosts are those of the ranks.
func Crowded(hosts []int) bool {
	for r := range hosts {
		if !firstOf(r, hosts) {
			return true
		}
	}
	return false
}

// Neighbours returns the ranks above and below in the ring of this rank's host. Both are
// the rank itself if it is alone there.
func Neighbours(rank int, hosts []int) (up, down int) {
	l := localityOf(rank, hosts)
	return l.ranked(hosts, Up(l.local, l.locals)), l.ranked(hosts, Down(l.local, l.locals))
}
