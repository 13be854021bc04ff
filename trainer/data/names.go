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

// idxName matches the name of one of the four files. A prefix names the set, as in
// emnist-letters-test-images-idx3-ubyte.gz.
var idxName = regexp.MustCompile(`^(.*[-_.])?(train|t10k|test)-(images-idx3|images\.idx3|labels-idx1|labels\.idx1)-ubyte(\.gz)?$`)

// findMNIST maps stems to existing files. If needed files are missing, its error lists
// them and the accepted names. Files without a prefix take precedence over those with the
// prefix of a set.
func findMNIST(dir string, needed []string) (map[string]string, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("cannot read the MNIST directory: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file, not an MNIST directory", dir)
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
		return nil, fmt.Errorf("%s contains the files of %d sets (%s); put each into its own directory", dir, len(whole), strings.Join(whole, ", "))
	}
	return sets[whole[0]], nil
}

// idxSets returns the IDX files of a directory, by the prefix of the set and the
// stem. Of several spellings it prefers t10k to test, then a dash to a dot, then
// plain to compressed.
func idxSets(dir string) (map[string]map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the MNIST directory: %w", err)
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

// lacking returns the needed stems for which a set has no file.
func lacking(set map[string]string, needed []string) []string {
	return slices.DeleteFunc(slices.Clone(needed), func(stem string) bool { return set[stem] != "" })
}

// missing returns an error that lists the missing files of the most complete set.
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
		files = "the missing files"
	}
	return fmt.Errorf("%s: %s (a .gz suffix, a dot before \"idx\", \"test\" for \"t10k\" and the name of a set as a prefix are accepted too); "+
		"put %s there", dir, strings.Join(none, ", "), files)
}
