package shm_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if place := os.Getenv(envRank); place != "" {
		if err := worker(place); err != nil {
			fmt.Println("end", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
