package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Limits in bytes: of the table on stdout, of which some machines forward only the last
// 12,000 characters, and of a file.
const (
	tableLimit   = 11_500
	archiveLimit = 15 << 20
)

// A summary has the results of a visit.
type summary struct {
	settings
	begun       time.Time
	interrupted bool
	results     []*result
}

// write prints the table, and writes report.md, result.json and, from the directory logs,
// logs.tar.gz.
func (s *summary) write(stdout io.Writer, logs string) error {
	s.reasons()
	table := s.table(tableLimit)
	if _, err := io.WriteString(stdout, table); err != nil {
		return err
	}
	var report strings.Builder
	report.WriteString(s.table(1 << 20))
	for _, r := range s.results {
		if len(r.Tables) > 0 {
			fmt.Fprintf(&report, "\n## %s\n\n%s\n", r.Step, strings.Join(r.Tables, "\n"))
		}
	}
	text, err := json.MarshalIndent(map[string]any{"begun": s.begun.UTC().Format(time.RFC3339), "steps": s.results}, "", "  ")
	if err != nil {
		return err
	}
	for name, content := range map[string]string{"report.md": clip(report.String(), archiveLimit), "result.json": string(text) + "\n"} {
		if err := os.WriteFile(filepath.Join(s.out, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return archive(logs, filepath.Join(s.out, "logs.tar.gz"), archiveLimit)
}

// reasons adds why to each step that did not run.
func (s *summary) reasons() {
	for _, r := range s.results {
		if r.Verdict == notRun && len(r.Failures) == 0 {
			r.Failures = append(r.Failures, map[bool]string{true: "the visit was interrupted", false: "no time left"}[s.interrupted])
		}
	}
}

// table returns verdicts, failures, skipped tests and figures, in at most size bytes. Each part
// has its share of them.
func (s *summary) table(size int) string {
	var b strings.Builder
	kind := "first visit"
	if s.rest {
		kind = "second visit"
	}
	fmt.Fprintf(&b, "# GPU check, %s: %s, %.0f s of %.0f s\n\n", kind, s.begun.UTC().Format("2006-01-02 15:04 UTC"), time.Since(s.begun).Seconds(), s.limit.Seconds())
	b.WriteString("| step | verdict | passed | skipped | failed | seconds |\n|---|---|---|---|---|---|\n")
	good := 0
	for _, r := range s.results {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %.1f |\n", r.Step, r.Verdict, r.Passed, r.Skipped, r.Failed, r.Seconds)
		if r.Verdict == ok {
			good++
		}
	}
	fmt.Fprintf(&b, "\n%d of %d steps are ok.\n", good, len(s.results))
	left := size - b.Len()
	sections := []struct {
		title string
		of    func(*result) []string
		share float64 // of the bytes that earlier parts leave
	}{
		{"Failures", func(r *result) []string { return r.Failures }, .45},
		{"Skipped", func(r *result) []string { return r.Skips }, .25},
		{"Figures", func(r *result) []string { return r.Figures }, 1},
	}
	for _, part := range sections {
		text := section(part.title, s.results, part.of, int(part.share*float64(left)))
		left -= len(text)
		b.WriteString(text)
	}
	return b.String()
}

// section lists the lines of all steps in at most size bytes. Each step has an equal share of
// the bytes that the steps before it leave.
func section(title string, results []*result, of func(*result) []string, size int) string {
	some := slices.DeleteFunc(slices.Clone(results), func(r *result) bool { return len(of(r)) == 0 })
	if len(some) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n", title)
	const note = 60 // bytes reserved for the number of omitted lines
	for i, r := range some {
		share := (size - b.Len()) / (len(some) - i)
		lines := alike(of(r))
		for j, line := range lines {
			line = "- " + r.Step + ": " + strings.Join(strings.Fields(clip(line, 1000)), " ") + "\n"
			if share -= len(line); share < note {
				fmt.Fprintf(&b, "- %s: %d more in report.md\n", r.Step, len(lines)-j)
				break
			}
			b.WriteString(line)
		}
	}
	return b.String()
}

// position matches the file and line at which a test logged.
var position = regexp.MustCompile(`^\w+_test\.go:\d+: `)

// alike joins lines that differ only in the name before the colon. If a hundred tests are
// skipped without a GPU, one line is enough.
func alike(lines []string) (joined []string) {
	count, first := map[string]int{}, map[string]int{}
	for _, line := range lines {
		_, said, found := strings.Cut(line, ": ")
		said = position.ReplaceAllString(said, "")
		if at, known := first[said]; found && known {
			count[joined[at]]++
			continue
		}
		first[said] = len(joined)
		joined = append(joined, line)
	}
	for i, line := range joined {
		if n := count[line]; n > 0 {
			joined[i] = fmt.Sprintf("%s (and %d others)", clip(line, 900), n)
		}
	}
	return joined
}

// archive packs a directory into a file of at most size bytes. The file LEFT-OUT in the archive
// lists the files that do not fit.
func archive(dir, path string, size int64) (err error) {
	file, err := create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	zip := gzip.NewWriter(file)
	pack := tar.NewWriter(zip)
	add := func(name, text string) error {
		if err := pack.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), ModTime: time.Now()}); err != nil {
			return err
		}
		_, err := io.WriteString(pack, text)
		return err
	}
	var left []string
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // without this log, but with the others
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if err := zip.Flush(); err != nil {
			return err
		}
		// A log is at most 4 MiB, and packing does not make it larger.
		if info, err := file.Stat(); err != nil || info.Size()+headBytes+tailBytes+4096 > size {
			left = append(left, relative)
			return nil
		}
		return add("logs/"+filepath.ToSlash(relative), readLog(name))
	})
	if err == nil && len(left) > 0 {
		err = add("logs/LEFT-OUT", strings.Join(left, "\n")+"\n")
	}
	for _, end := range []func() error{pack.Close, zip.Close} {
		if e := end(); err == nil {
			err = e
		}
	}
	return err
}
