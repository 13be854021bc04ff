package config_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func jsonUnmarshal(text string, v any) error { return json.Unmarshal([]byte(text), v) }

func jsonMarshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// quote returns a string as a config value.
func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return bytes.ReplaceAll(b, []byte("$"), []byte("$$"))
}
