package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// looked describes the search, for errors.
const looked = "where the loader looks, in CUDA_HOME, in /usr/local/cuda*, in the system's directories and among Python's packages"

// A Shared is a library that was loaded. Unless the search refuses it, it stays loaded until
// the process ends.
type Shared struct {
	Library Library
	Path    string // its file
	handle  uintptr
	started bool // it has used a device, and unloading it would not be safe
}

// Open loads the library from the first place where that works and where usable returns nil.
// usable may be nil. It refuses a library with Shared.Refuse, and then the search continues.
// The error wraps ErrUnavailable, and says what was found where, why it was refused, and how
// to get the library. It also wraps ErrNotInstalled if no place has the library and the
// variable is not set.
func (l Library) Open(usable func(*Shared) error) (*Shared, error) {
	loaded.Lock()
	newest := loaded.version
	loaded.Unlock()
	return l.open(newest, usable)
}

func (l Library) open(newest int, usable func(*Shared) error) (*Shared, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	var found []*refusal
	tried := map[string]bool{} // files, because links can lead to the same one
	for _, name := range l.candidates(thisMachine(newest)) {
		library, err := l.load(name)
		if err != nil {
			// For a soname, the loader's error says only that there is none. For a file that
			// exists, it says what is wrong.
			if strings.Contains(name, "/") {
				found = append(found, &refusal{file: name, why: err})
			}
			continue
		}
		file := resolved(library.Path)
		if tried[file] {
			library.close()
			continue
		}
		tried[file] = true
		if usable == nil {
			return library, nil
		}
		if err = usable(library); err == nil {
			return library, nil
		}
		library.close()
		found = append(found, library.refusal(err))
	}
	return nil, l.notFound(found)
}

// load opens a candidate.
func (l Library) load(name string) (*Shared, error) {
	handle, err := openLibrary(name)
	if err != nil {
		return nil, err
	}
	s := &Shared{Library: l, Path: name, handle: handle}
	if !strings.Contains(name, "/") {
		s.Path = libraryFile(handle)
	}
	return s, nil
}

// close unloads a library that was refused. Otherwise the loader would return it for other
// files with its soname.
func (s *Shared) close() {
	if !s.started {
		closeLibrary(s.handle)
	}
}

// resolved returns the file to which links lead.
func resolved(file string) string {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		return target
	}
	return file
}

// A refusal says why a library that was found cannot be used.
type refusal struct {
	file   string
	why    error
	advice string // what to do; "" if why says it, or if the file cannot be loaded
	loaded bool
}

// Error returns the reason and the advice.
func (r *refusal) Error() string {
	if r.advice == "" {
		return r.why.Error()
	}
	return r.why.Error() + ": " + r.advice
}

// Unwrap returns the reason.
func (r *refusal) Unwrap() error { return r.why }

// Refuse returns the error of a usable that refuses the library, see Library.Open.
func (s *Shared) Refuse(why error) error {
	return &refusal{file: s.Path, why: why, advice: s.Library.advice(), loaded: true}
}

// refusal returns an error of usable as a refusal.
func (s *Shared) refusal(err error) *refusal {
	if r, ok := err.(*refusal); ok {
		return r
	}
	return &refusal{file: s.Path, why: err, loaded: true}
}

// advice says how to get another file of the library.
func (l Library) advice() string {
	return fmt.Sprintf("%s, or set %s to another file", l.Get, l.Variable)
}

// notFound returns the error of a search that found only these.
func (l Library) notFound(found []*refusal) error {
	if file := os.Getenv(l.Variable); file != "" {
		if len(found) > 0 && found[0].loaded {
			return fmt.Errorf("%w: %w", ErrUnavailable, found[0])
		}
		why := "the loader does not find it" // a soname, not a path
		if len(found) > 0 {
			why = strings.TrimPrefix(found[0].Error(), file+": ")
		}
		return unavailablef("%s cannot be loaded from %s, which %s names: %s; correct the variable, or unset it", l.Name, file, l.Variable, why)
	}
	what, get := strings.Join(l.Sonames, " or "), fmt.Sprintf("%s, or set %s to the file", l.Get, l.Variable)
	switch {
	case len(found) == 0:
		return notInstalled{unavailablef("there is no %s %s: %s", what, looked, get)}
	case len(found) == 1 && found[0].loaded:
		return fmt.Errorf("%w: %w", ErrUnavailable, found[0])
	case !slices.ContainsFunc(found, func(r *refusal) bool { return r.loaded }):
		return unavailablef("there is no %s that can be loaded (%s) %s: %s", what, several(found), looked, get)
	}
	return fmt.Errorf("%w: none of the %d files found for %s can be used: %w", ErrUnavailable, len(found), l.Name, several(found))
}

// several is refusals as one error.
type several []*refusal

// Error returns all reasons, each with its file, and each advice once, after its last reason.
func (all several) Error() string {
	var text strings.Builder
	for i, r := range all {
		if i > 0 {
			text.WriteString("; ")
		}
		if why := r.why.Error(); strings.Contains(why, r.file) {
			text.WriteString(why)
		} else {
			text.WriteString(r.file + ": " + why)
		}
		if r.advice != "" && !slices.ContainsFunc(all[i+1:], func(next *refusal) bool { return next.advice == r.advice }) {
			text.WriteString(": " + r.advice)
		}
	}
	return text.String()
}

// Unwrap returns the refusals.
func (all several) Unwrap() []error {
	errs := make([]error, len(all))
	for i, r := range all {
		errs[i] = r
	}
	return errs
}

// Symbol returns the address of a function of the library.
func (s *Shared) Symbol(name string) (uintptr, error) {
	address := librarySymbol(s.handle, name)
	if address == 0 {
		return 0, s.lacks(name)
	}
	return address, nil
}

// lacks returns the error for a library that lacks a function we need.
func (s *Shared) lacks(function string) error {
	return s.Refuse(fmt.Errorf("%s has no function %s, so it is not a usable %s", s.Path, function, s.Library.Name))
}
