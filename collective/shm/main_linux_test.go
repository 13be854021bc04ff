package shm_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/collective/shm"
)

func TestMain(m *testing.M) {
	if rank := os.Getenv(envRank); rank != "" {
		if err := worker(rank); err != nil {
			fmt.Println("end", err)
			os.Exit(1)
		}
		return
	}
	if server := os.Getenv(shm.EnvStranger); server != "" {
		if err := shm.Intrude(server); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
