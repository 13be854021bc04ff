package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A python is a Python interpreter, described without importing PyTorch.
type python struct {
	path  string   // "" for none
	torch bool     // PyTorch is installed
	paths []string // its search path for packages
}

func (p python) String() string {
	switch {
	case p.path == "":
		return "none"
	case !p.torch:
		return p.path + " without PyTorch"
	}
	return p.path + " with PyTorch"
}

// findPython returns an interpreter with PyTorch or, if there is none, any that works.
func findPython() (any python) {
	var candidates []string
	if root := os.Getenv("VIRTUAL_ENV"); root != "" {
		candidates = append(candidates, root+"/bin/python3")
	}
	if path, err := exec.LookPath("python3"); err == nil {
		candidates = append(candidates, path)
	}
	for _, pattern := range []string{"/opt/*/.venv/bin/python3", "/opt/*/bin/python3"} {
		found, _ := filepath.Glob(pattern) // the pattern is well-formed
		candidates = append(candidates, found...)
	}
	for _, path := range candidates {
		p, works := ask(path)
		if p.torch {
			return p
		}
		if works && any.path == "" {
			any = p
		}
	}
	return any
}

// question makes Python print whether PyTorch is installed, and its search path.
const question = `import importlib.util, sys
print(importlib.util.find_spec("torch") is not None)
print("\n".join(p for p in sys.path if p))`

func ask(path string) (p python, works bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-c", question)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return python{}, false
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return python{path, lines[0] == "True", lines[1:]}, true
}

// wheels returns patterns of the directories where pip installs CUDA's libraries:
// nvidia/nccl/lib, or nvidia/cu13/lib since CUDA 13. It includes the usual ones even if no
// interpreter was found.
func (p python) wheels() (patterns []string) {
	for _, path := range p.paths {
		patterns = append(patterns, path+"/nvidia/*/lib")
	}
	for _, root := range []string{os.Getenv("VIRTUAL_ENV"), "/opt/*/.venv", "/usr/local", "/usr"} {
		if root != "" {
			patterns = append(patterns, root+"/lib/python3*/*-packages/nvidia/*/lib")
		}
	}
	return slices.Compact(patterns)
}
