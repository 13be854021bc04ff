package query_test

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/collective/query"
)

// One machine answers. Another checks the network between them in both directions.
func ExampleReach() {
	there, err := query.Answer("127.0.0.1:0", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer there.Close()
	failed := 0
	for _, c := range query.Reach(context.Background(), there.Addr().String(), "") {
		if !c.OK {
			failed++
			fmt.Println(c.Name, c.Detail, c.Do)
		}
	}
	fmt.Println(failed, "checks failed")
	// Output: 0 checks failed
}
