package config_test

import (
	"fmt"

	"github.com/ringtrain/ringtrain/trainer/config"
)

// Take overrides from the command line before parsing the config.
func ExampleParse() {
	args := []string{"train", "mnist.cfg", "--training.batch_size", "64"}
	rest, overrides, err := config.SplitOverrides(args, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := config.Parse("mnist.cfg", "[training]\nbatch_size = 128\n[evaluation]\nbatch_size = ${training.batch_size}\n", overrides)
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := c.Int("evaluation.batch_size", 256)
	fmt.Println(rest, rows, err)

	fmt.Println(c.CheckKeys("training", "batchsize", "iterations"))
	// Output:
	// [train mnist.cfg] 64 <nil>
	// --training.batch_size: section [training] has no key "batch_size"; did you mean "batchsize"?
}

func ExampleRegistry_Resolve() {
	r := config.NewRegistry()
	err := r.Register("layers", "Relu.v1", config.Func{
		Params: []config.Param{
			{Name: "nO", Type: config.Int, Required: true},
			{Name: "dropout", Type: config.Float, Default: 0.0},
		},
		Make: func(a config.Args) (any, error) {
			return fmt.Sprintf("relu of %d, dropout %g", a.Int("nO"), a.Float("dropout")), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := config.Parse("mlp.cfg", "[model]\n@layers = \"Relu.v1\"\nnO = 128\n", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Resolve(c, "model"))

	c, err = config.Parse("mlp.cfg", "[model]\n@layers = \"Relu.v1\"\nn0 = 128\n", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = r.Resolve(c, "model")
	fmt.Println(err)
	// Output:
	// relu of 128, dropout 0 <nil>
	// mlp.cfg:3: model: layers -> Relu.v1 has no argument "n0"; did you mean "nO"?
}
