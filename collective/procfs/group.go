package procfs

import (
	"io/fs"
	"iter"
	"math"
	"path"
	"strconv"
	"strings"
)

// A Group is a control group of this process that can limit its memory, of version 1 or
// 2. A limit of a group applies to all groups below it, so methods report the narrowest of
// the group and those above it.
type Group struct {
	system fs.FS
	files  *hierarchy
	path   string
}

// A hierarchy is where the kernel reports control groups.
type hierarchy struct {
	mount        string
	limit, usage string // of memory
	droppable    string // key in memory.stat: file pages that the kernel drops when it needs memory
	quota        string // of processor time; "" if another hierarchy limits it
}

var (
	unified = hierarchy{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", "cpu.max"}
	legacy  = hierarchy{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", ""}
)

// leastUnlimited is less than what version 1 reports as the limit of a group without one:
// the largest int64 that is a number of pages.
const leastUnlimited = 1 << 62

// Groups returns the groups of this process. There is one of each version at most.
func Groups(system fs.FS) iter.Seq[Group] {
	return func(yield func(Group) bool) {
		text, _ := fs.ReadFile(system, "proc/self/cgroup")
		for line := range strings.Lines(string(text)) {
			entry := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, group
			if len(entry) < 3 {
				continue
			}
			var files *hierarchy
			switch entry[1] {
			case "":
				files = &unified
			case "memory":
				files = &legacy
			default:
				continue
			}
			if !yield(Group{system, files, path.Clean("/" + entry[2])}) {
				return
			}
		}
	}
}

// around returns the directories of the group and of those above it. A container may see
// the names that its groups have outside. Then only the topmost directory exists.
func (g Group) around() iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := g.path; yield(path.Join(g.files.mount, at)) && at != "/"; {
			at = path.Dir(at)
		}
	}
}

// Limit returns the most bytes of memory that the group may have; math.MaxUint64 if it has
// no limit.
func (g Group) Limit() uint64 {
	limit := uint64(math.MaxUint64)
	for dir := range g.around() {
		limit = min(limit, g.limit(dir))
	}
	return limit
}

// limit returns the limit in one directory.
func (g Group) limit(dir string) uint64 {
	limit, err := strconv.ParseUint(Line(g.system, path.Join(dir, g.files.limit)), 10, 64)
	if err != nil || limit >= leastUnlimited {
		return math.MaxUint64
	}
	return limit
}

// Room returns how many bytes of memory the group can still allocate, counting pages that
// the kernel can drop as free; math.MaxUint64 if it has no limit.
func (g Group) Room() uint64 {
	room := uint64(math.MaxUint64)
	for dir := range g.around() {
		limit := g.limit(dir)
		if limit == math.MaxUint64 {
			continue
		}
		used, _ := strconv.ParseUint(Line(g.system, path.Join(dir, g.files.usage)), 10, 64)
		used -= min(used, statistic(Line(g.system, path.Join(dir, "memory.stat")), g.files.droppable))
		room = min(room, limit-min(used, limit))
	}
	return room
}

// Quota returns how many cores the group may keep busy; +Inf if it has no limit. Groups of
// version 1 have none here.
func (g Group) Quota() float64 {
	cores := math.Inf(1)
	if g.files.quota == "" {
		return cores
	}
	for dir := range g.around() {
		quota, period, _ := strings.Cut(Line(g.system, path.Join(dir, g.files.quota)), " ")
		q, err := strconv.ParseFloat(quota, 64)
		p, err2 := strconv.ParseFloat(period, 64)
		if err == nil && err2 == nil && p > 0 {
			cores = min(cores, q/p)
		}
	}
	return cores
}
