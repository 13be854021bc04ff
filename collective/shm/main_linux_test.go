package shm_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/collective/shm"
)

func TestMain(m *testing.M) {
	if place := os.Getenv(envRank); place != "" {
		if err := worker(place); err != nil {
			fmt.Println("end", err)
			os.Exit(1)
		}
		return
	}
	if door := os.Getenv(shm.EnvVisitor); door != "" {
		if err := shm.Visit(door); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
