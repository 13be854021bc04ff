package data

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// idxName is a name of one of the four files. What stands before the part names
// the set, as in emnist-letters-test-images-idx3-ubyte.gz.
var idxName = regexp.MustCompile(`^(.*[-_.])?(train|t10k|test)-(images-idx3|images\.idx3|labels-idx1|labels\.idx1)-ubyte(\.gz)?$`)

// findMNIST maps stems to existing files, or says in one error which of those
// needed are missing and by what names they were looked for. Files without a name
// of a set go before those of a set.
func findMNIST(dir string, needed []string) (map[string]string, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("an MNIST directory is expected: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("an MNIST directory is expected, %s is a file", dir)
	}
	sets, err := idxSets(dir)
	if err != nil {
		return nil, err
	}
	var whole []string
	for _, set := range slices.Sorted(maps.Keys(sets)) {
		if len(lacking(sets[set], needed)) == 0 {
			whole = append(whole, set)
		}
	}
	switch {
	case len(whole) == 0:
		return nil, missing(dir, sets, needed)
	case len(whole) > 1 && whole[0] != "":
		return nil, fmt.Errorf("%s: there are the files of %d sets (%s): give each a directory of its own", dir, len(whole), strings.Join(whole, ", "))
	}
	return sets[whole[0]], nil
}

// idxSets is the IDX files of a directory, by the name of the set and the stem.
// Of several spellings the first of them counts: t10k, with a dash, plain.
func idxSets(dir string) (map[string]map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("an MNIST directory is expected: %w", err)
	}
	sets, ranks := map[string]map[string]string{}, map[string]int{}
	for _, e := range entries {
		m := idxName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		set, stem, rank := m[1], m[2]+"-"+m[3][:len("images")], 0
		if m[2] == "test" {
			stem, rank = "t10k"+stem[len("test"):], 4
		}
		if strings.Contains(m[3], ".") {
			rank += 2
		}
		if m[4] != "" {
			rank++
		}
		if sets[set] == nil {
			sets[set] = map[string]string{}
		}
		if old, taken := ranks[set+stem]; !taken || rank < old {
			sets[set][stem], ranks[set+stem] = filepath.Join(dir, e.Name()), rank
		}
	}
	return sets, nil
}

// lacking is the stems that a set needs and has no file for.
func lacking(set map[string]string, needed []string) []string {
	return slices.DeleteFunc(slices.Clone(needed), func(stem string) bool { return set[stem] != "" })
}

// missing says which files are not there, of the set that has most.
func missing(dir string, sets map[string]map[string]string, needed []string) error {
	most := ""
	for _, set := range slices.Sorted(maps.Keys(sets)) {
		if len(lacking(sets[set], needed)) < len(lacking(sets[most], needed)) {
			most = set
		}
	}
	var none []string
	for _, stem := range lacking(sets[most], needed) {
		kind := "-idx3-ubyte"
		if stem == trainLabels || stem == testLabels {
			kind = "-idx1-ubyte"
		}
		none = append(none, "no "+most+stem+kind)
	}
	files := "the four MNIST files"
	if len(needed) < len(stems) {
		files = "what is missing"
	}
	return fmt.Errorf("%s: %s (looked for each with and without .gz, with a dot before \"idx\", with \"test\" for \"t10k\", and with the name of a set before it); "+
		"put %s there", dir, strings.Join(none, ", "), files)
}
