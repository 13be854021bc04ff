package data_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ringtrain/ringtrain/trainer/data"
)

func ExampleWriteIDX() {
	dir, err := os.MkdirTemp("", "idx")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "labels-idx1-ubyte.gz")

	if err := data.WriteIDX(path, &data.IDX{Dims: []int{3}, Data: []byte{7, 2, 1}}); err != nil {
		fmt.Println(err)
		return
	}
	x, err := data.ReadIDX(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(x.Dims, x.Data)
	// Output: [3] [7 2 1]
}

// Two ranks each read half of a step's global batch.
func ExampleSampler() {
	train, _ := data.Generate(data.DigitsOptions{Train: 100, Test: 10})
	const batch, size = 4, 2
	x, labels := make([]float32, batch*train.Features()), make([]int32, batch)
	for rank := range size {
		s, err := data.NewSampler(train.Rows, batch, rank, size, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		rows, global := s.Step(12)
		if err := train.Gather(rows, x, labels); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(rank, len(rows), "of", global, "rows; epoch ends after step", s.StepsPerEpoch()-1)
	}
	// Output:
	// 0 2 of 4 rows; epoch ends after step 12
	// 1 2 of 4 rows; epoch ends after step 12
}
