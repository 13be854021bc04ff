package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// function matches a kernel, or a function that kernels call.
var function = regexp.MustCompile(`(?m)^(extern "C" __global__|__device__)[^;{]*?(?:__launch_bounds__ *\([^)]*\) *)?\b([a-z0-9_]+)\(`)

// kernels returns the names of all kernels in the source, and of those whose threads share
// memory or wait for each other, directly or in functions that they call.
func kernels(root string) (all, shared []string) {
	var source strings.Builder
	files, _ := filepath.Glob(filepath.Join(root, "cuda", "kernels", "*.cu")) // the pattern is well-formed
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the list is then too short; parity fails if it is empty
		}
		source.Write(text)
	}
	text := source.String()
	found := function.FindAllStringSubmatchIndex(text, -1)
	bodies := map[string]string{}
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		name := text[at[4]:at[5]]
		bodies[name] = text[at[5]:end]
		if strings.HasPrefix(text[at[2]:at[3]], "extern") {
			all = append(all, name)
		}
	}
	sharing := regexp.MustCompile(`__shared__|__syncthreads`)
	for known := -1; known < len(shared); {
		known = len(shared)
		for name, body := range bodies {
			if sharing.MatchString(body) && !slices.Contains(shared, name) {
				shared = append(shared, name)
			}
		}
		if len(shared) > 0 {
			sharing = regexp.MustCompile(`__shared__|__syncthreads|\b(` + strings.Join(shared, "|") + `)\(`)
		}
	}
	shared = slices.DeleteFunc(shared, func(name string) bool { return !slices.Contains(all, name) })
	slices.Sort(shared)
	return all, shared
}
