package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A scalingFile is one file of --out.
type scalingFile struct {
	name  string
	write func(Scaling, io.Writer) error
}

func scalingFiles() []scalingFile {
	files := []scalingFile{
		{"table.md", Scaling.Markdown},
		{"scaling.json", Scaling.WriteJSON},
		{"scaling.csv", Scaling.WriteCSV},
	}
	for _, name := range ScalingPlots() {
		for _, format := range []string{"png", "svg"} {
			files = append(files, scalingFile{name + "." + format, func(s Scaling, w io.Writer) error { return s.Plot(w, format, name) }})
		}
	}
	return files
}

// prepareFiles creates the directory of --out and checks that the files can be written,
// before an hour of measurements is lost. drop removes the directory again if
// prepareFiles created it and it is empty.
func prepareFiles(dir string) (drop func(), err error) {
	_, missing := os.Stat(dir)
	if err := job.PrepareDir(dir); err != nil {
		return nil, err
	}
	for _, f := range scalingFiles() {
		path := filepath.Join(dir, f.name)
		if info, err := os.Stat(path); dir != "" && err == nil && info.IsDir() {
			return nil, fmt.Errorf("--out: %s is a directory, but the name of a file to write; remove it or choose another directory", path)
		}
	}
	return func() {
		if dir != "" && missing != nil {
			_ = os.Remove(dir) // fails if it is not empty
		}
	}, nil
}

// claimOut prepares the directory of --out and locks it. release unlocks it, and removes
// it again if claimOut created it and it is empty.
func (f *ScalingRun) claimOut() (release func(), err error) {
	drop, err := prepareFiles(f.Out)
	if err != nil || f.Out == "" {
		return func() {}, err
	}
	unlock, err := job.LockDirs([]job.Dir{{Flag: "--out", Path: f.Out}}, launch.LockOptions{Job: crew.OwnCluster(), Force: f.Force})
	if err != nil {
		drop()
		return nil, err
	}
	return func() {
		unlock()
		drop()
	}, nil
}

// writeFiles writes all files of --out.
func (s Scaling) writeFiles(dir string) error {
	if dir == "" {
		return nil
	}
	var errs []error
	for _, f := range scalingFiles() {
		errs = append(errs, WriteTo(filepath.Join(dir, f.name), func(w io.Writer) error { return f.write(s, w) }))
	}
	return errors.Join(errs...)
}
