package config

import (
	"slices"
	"strings"
)

// didYouMean returns `; did you mean "x"?` for the candidate closest to word, or "" if
// none is close.
func didYouMean(word string, candidates []string) phrase {
	if n := Nearest(word, candidates); n != "" {
		return phrasef("; did you mean %q?", n)
	}
	return ""
}

// Either joins alternatives for errors and help: "a", "a or b", "a, b or c".
func Either(all []string) string {
	n := len(all) - 1
	if n < 1 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:n], ", ") + " or " + all[n]
}

// Nearest returns the candidate with the smallest edit distance from word, if that is at
// most a third of its length (or 1 for short words), and "" otherwise. It ignores case,
// '-' and '_', which people often get wrong.
func Nearest(word string, candidates []string) string {
	const farthest = 64 // longer words are not compared
	if len(word) > farthest {
		return ""
	}
	best, bestAt := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if len(c) > farthest {
			continue
		}
		if d := distance(normalized(word), normalized(c)); d < bestAt {
			best, bestAt = c, d
		}
	}
	return best
}

func normalized(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// distance counts the bytes to insert, delete, replace or swap with their neighbour
// (restricted Damerau-Levenshtein distance).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// listed returns the names sorted and separated by commas.
func listed(names []string) phrase {
	if len(names) == 0 {
		return "none"
	}
	return phrase(strings.Join(slices.Sorted(slices.Values(names)), ", "))
}
