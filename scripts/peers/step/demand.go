package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A demand is a minimum for the ratio of a peer's time to ringtrain's.
type demand struct {
	model, peer string // "" means all
	base        string
	ratio       float64
}

// parseDemands reads a comma-separated list of [MODEL:][PEER[/OURS]=]RATIO, such as
// mlp:debian=2,gorgonia/ringtrain-openblas=1. A number alone is for all peers and models.
func parseDemands(list string) ([]demand, error) {
	var all []demand
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		d, rest := demand{base: ours}, text
		if model, after, ok := strings.Cut(rest, ":"); ok {
			d.model, rest = model, after
		}
		if who, after, ok := strings.Cut(rest, "="); ok {
			peer, base, ok := strings.Cut(who, "/")
			if d.peer, rest = peer, after; ok {
				d.base = base
			}
		}
		ratio, err := strconv.ParseFloat(rest, 64)
		if d.ratio = ratio; err != nil || !(ratio > 0) || d.model != "" && !slices.Contains(modelNames, d.model) || !known(d.peer) || !isOurs(d.base) {
			return nil, usageError(fmt.Sprintf("-require takes [MODEL:][PEER[/OURS]=]RATIO, not %q", text))
		}
		all = append(all, d)
	}
	return all, nil
}

// known reports whether there is such a peer. "" means all of them.
func known(peer string) bool {
	return peer == "" || programs.Index(peer) < len(programs) && !isOurs(peer)
}

// unmet returns an error for each ratio that is lower, or that was not measured although
// the demand names its peer.
func (d demand) unmet(results []result) error {
	var unmet []error
	found := false
	for _, r := range results {
		if d.model != "" && r.model != d.model {
			continue
		}
		for _, x := range r.rows {
			if isOurs(x.program) || d.peer != "" && x.program != d.peer {
				continue
			}
			ratio, ok := r.ratio(x.program, d.base)
			if !ok {
				continue
			}
			found = true
			if ratio < d.ratio {
				unmet = append(unmet, fmt.Errorf("%s: %s / %s is %.2f, but must be at least %.2f", r.model, programs.Title(x.program), programs.Title(d.base), ratio, d.ratio))
			}
		}
	}
	if !found && d.peer != "" {
		unmet = append(unmet, fmt.Errorf("%s / %s was not measured, but must be at least %.2f", programs.Title(d.peer), programs.Title(d.base), d.ratio))
	}
	return errors.Join(unmet...)
}
