package cli

import "strings"

// checkTilde returns an error if the value of a flag begins with ~, which stands for the home
// directory only if the shell replaces it: not in --out=~/run, and not in quotes. Without this, a
// directory called ~ would be made.
func checkTilde(args []string) error {
	for i, arg := range args {
		flag, value, joined := strings.Cut(arg, "=")
		if !joined && i > 0 {
			flag, value = args[i-1], arg
		}
		if strings.HasPrefix(flag, "--") && !strings.Contains(flag, "=") && (value == "~" || strings.HasPrefix(value, "~/")) {
			return usagef("%s %s: the shell did not replace ~ by your home directory; write %s \"$HOME%s\"", flag, value, flag, value[1:])
		}
	}
	return nil
}
