package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// doubted writes a table of 40 rows. Many of its columns deserve a warning.
func doubted(t *testing.T) string {
	text := "id,date,share,colour,note,name,price,kind,number\n"
	for i := range 40 {
		text += fmt.Sprintf("x%d,2026-01-%d,%d %%,%c,note %d,name %d,$%d.5,%c,%d\n", i, i, i%3, 'a'+i%2, i, i, i, 'p'+i%2, i)
	}
	path := filepath.Join(t.TempDir(), "t.csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Datasets warn of columns that are hardly categories, of a few by name.
func TestDoubtfulColumns(t *testing.T) {
	path := doubted(t)
	d, err := csvRows(path, Options{Target: "kind", Holdout: .2})
	require.NoError(t, err)
	const because = " different texts in 32 rows; each becomes a category, which new rows will not have: remove the column, or choose others with Columns.v1"
	require.Equal(t, []string{
		path + `: column "id" has 32` + because,
		path + `: column "date" has 32` + because,
		d.Info().Warnings[2],
		path + ": 3 more columns deserve such a warning",
	}, d.Info().Warnings)
	require.Contains(t, d.Info().Warnings[2], `column "share": `)
	require.Contains(t, d.Info().Warnings[2], ` %" is a number with other characters`)
	d.(*table).info.Warnings = nil
	_, err = tableClassification{}.Fit(d, nil)
	require.NoError(t, err)
	require.Empty(t, d.Info().Warnings, "two classes are no reason to doubt")
}

// A classification warns of a target that is hardly one of classes.
func TestDoubtfulClasses(t *testing.T) {
	for target, want := range map[string]string{
		"name":   `: column "name" has 40 different texts in 40 rows; each becomes a class: choose another --target`,
		"number": `: column "number" has 40 different texts in 40 rows; each becomes a class: did you mean regression.v1?`,
		"price":  `:2: column "price": "$0.5" is a number with other characters, so every text in the column is a category; write plain numbers such as 1234.5`,
	} {
		path := doubted(t)
		d, err := csvRows(path, Options{Target: target, Holdout: .2})
		require.NoError(t, err)
		d.(*table).info.Warnings = nil
		_, err = tableClassification{}.Fit(d, nil)
		require.NoError(t, err)
		require.Equal(t, []string{path + want}, d.Info().Warnings)
	}
}
