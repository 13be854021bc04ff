package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/pflag"
)

// emptyAdvice says what to do about a flag with an empty value.
var emptyAdvice = map[string]string{
	"data":          "name rows, or leave it out",
	"device":        "choose auto, cpu or cuda, or leave it out",
	"from":          "name a scaling.json, or leave it out",
	"init":          "name a file of weights, or leave it out",
	"key-file":      "name the file that ringtrain keygen made",
	"order":         "choose ring or any, or leave it out",
	"nccl":          "choose auto, must or off, or leave it out",
	"out":           "name a directory, or leave it out",
	"out-fallback":  "name a directory, or leave it out",
	"resume":        "name the directory of an earlier --out",
	"server-dir":    "name a directory, or leave it out",
	"servers":       "give a number or colocated, or leave it out",
	"strategy":      "choose one, or leave it out",
	"switch":        "name steps and strategies, or leave it out",
	"time-products": "name a directory for what is found out, or leave it out",
	"trace":         "name a directory, or leave it out",
	"until":         "name a metric and a value, such as accuracy=.95, or leave it out",
}

// emptyUsual is the advice for all other flags.
const emptyUsual = "give it a value, or leave it out"

// checkEmpty returns an error if one of these flags is given an empty value: it is an unset
// variable of a script. What would happen without the flag is not what its author meant.
func checkEmpty(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		value := flags.Lookup(name).Value
		list, isList := value.(pflag.SliceValue)
		if !flags.Changed(name) || value.String() != "" && !(isList && len(list.GetSlice()) == 0) {
			continue
		}
		return fmt.Errorf("--%s is empty: %s", name, cmp.Or(emptyAdvice[name], emptyUsual))
	}
	return nil
}
