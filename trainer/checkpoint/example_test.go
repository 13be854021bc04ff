package checkpoint_test

import (
	"fmt"
	"os"
	"path/filepath"

	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

func ExampleSave() {
	dir, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "step-200.safetensors")

	w := tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float32{1, 2, 3, 4}))
	err = checkpoint.Save(path, checkpoint.File{
		Tensors:  []checkpoint.Named{{Name: "layers.0.W", Tensor: w}},
		Metadata: map[string]string{"step": "200"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	f, err := checkpoint.Load(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, _ := f.Tensor("layers.0.W")
	fmt.Println(f.Metadata["step"], got.Shape(), got.Data())
	// Output: 200 (2, 2) [1 2 3 4]
}
