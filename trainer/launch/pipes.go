package launch

import "os"

// The pipes between a launcher and one worker.
const (
	stdoutPipe = iota
	stderrPipe
	lifelinePipe
	pipeCount
)

// pipes holds both ends of each pipe until the worker has been started.
type pipes struct {
	ours, theirs [pipeCount]*os.File
}

// connect creates the pipes and gives the command its ends.
func (p *Process) connect() (*pipes, error) {
	var all pipes
	for i := range pipeCount {
		r, w, err := os.Pipe()
		if err != nil {
			all.closeOurs()
			all.closeTheirs()
			return nil, err
		}
		if i == lifelinePipe {
			r, w = w, r
		}
		all.ours[i], all.theirs[i] = r, w
	}
	p.cmd.Stdout = all.theirs[stdoutPipe]
	p.cmd.Stderr = all.theirs[stderrPipe]
	passLifeline(p.cmd, all.theirs[lifelinePipe])
	return &all, nil
}

func (p *pipes) closeOurs()   { closeAll(p.ours[:]) }
func (p *pipes) closeTheirs() { closeAll(p.theirs[:]) }

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
