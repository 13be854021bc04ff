// Command crosscheck type-checks packages and their tests for another system,
// from source: a compiler would first have to compile all that they import.
//
//	crosscheck darwin/arm64 windows/amd64
//	crosscheck -tests=false linux/386
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	tests := flag.Bool("tests", true, "check tests, too")
	flag.Parse()
	for _, target := range flag.Args() {
		if err := check(target, *tests); err != nil {
			fmt.Fprintf(os.Stderr, "crosscheck %s: %v\n", target, err)
			os.Exit(1)
		}
	}
}

// check loads every package of the module in the working directory as for
// target, which is GOOS/GOARCH.
func check(target string, tests bool) error {
	system, arch, ok := strings.Cut(target, "/")
	if !ok {
		return errors.New("name a target as in darwin/arm64")
	}
	loaded, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
		Tests: tests,
	}, "./...")
	if err != nil {
		return err
	}
	if n := packages.PrintErrors(loaded); n > 0 {
		return fmt.Errorf("%d errors", n)
	}
	fmt.Printf("crosscheck %s: %d packages, tests: %v\n", target, len(loaded), tests)
	return nil
}
