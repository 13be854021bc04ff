package cli

import "strings"

// command returns the command line as a user would type it.
func (a *app) command() string {
	words := []string{"ringtrain"}
	for _, arg := range a.args {
		words = append(words, shellWord(arg))
	}
	return strings.Join(words, " ")
}

// shellWord returns text as one word of a POSIX shell. It quotes everything except
// characters that mean nothing to any shell.
func shellWord(text string) string {
	const plain = "%+,-./0123456789:=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
