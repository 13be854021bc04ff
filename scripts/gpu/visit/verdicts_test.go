package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const output = `$ gpu.test -test.v
=== RUN   TestA
--- PASS: TestA (0.00s)
=== RUN   TestB
=== RUN   TestB/one
=== RUN   TestB/two
    b_test.go:7: there is no such device
=== NAME  TestB/one
    b_test.go:9:
        	Error Trace:	b_test.go:9
        	Error:      	Not equal:
        	            	expected: 1
--- FAIL: TestB (0.00s)
    --- FAIL: TestB/one (0.00s)
    --- SKIP: TestB/two (0.00s)
=== RUN   TestC
    c_test.go:3: NCCL is too old
--- SKIP: TestC (0.00s)
=== RUN   TestD
=== RUN   TestD/x
panic: boo

goroutine 1 [running]:
`

func TestParse(t *testing.T) {
	v := parseTests(output)
	require.Equal(t, []string{"TestA"}, v.of("PASS"))
	require.Equal(t, []string{"TestB/two", "TestC"}, v.of("SKIP"))
	require.Equal(t, []string{"TestB/one", "TestD/x"}, v.broken(), "and not those that only have such subtests")
	require.Equal(t, passed, v.fate("TestA"))
	require.Equal(t, broke, v.fate("TestB"))
	require.Equal(t, omitted, v.fate("TestC"))
	require.Equal(t, broke, v.fate("TestD"))
	require.Equal(t, absent, v.fate("TestE"))
	require.Equal(t, "Not equal: / expected: 1", v.why("TestB/one"))
	require.Equal(t, "c_test.go:3: NCCL is too old", v.why("TestC"))
	require.Equal(t, "panic: boo / goroutine 1 [running]:", v.why("TestD/x"))
}

// Go passes a test whose subtests were all skipped. Here such a test counts as skipped.
func TestSkippedSubtests(t *testing.T) {
	v := parseTests("=== RUN   TestA\n=== RUN   TestA/b\n--- PASS: TestA (0.00s)\n    --- SKIP: TestA/b (0.00s)\n")
	require.Empty(t, v.of("PASS"))
	require.Equal(t, omitted, v.fate("TestA"))
}

func TestJudge(t *testing.T) {
	for want, r := range map[string]result{
		ok:      {Passed: 2, Skipped: 1},
		skipped: {Passed: 2, Skipped: 1, missed: true},
		failed:  {Passed: 9, Skipped: 1, Failed: 1, missed: true},
	} {
		r.judge()
		require.Equal(t, want, r.Verdict)
	}
	onlySkips, nothing := result{Skipped: 3}, result{}
	onlySkips.judge()
	nothing.judge()
	require.Equal(t, skipped, onlySkips.Verdict)
	require.Equal(t, failed, nothing.Verdict)
	require.Equal(t, []string{"the step checked nothing"}, nothing.Failures)
}

func TestExactly(t *testing.T) {
	require.Equal(t, `^TestParity$/^a\.b_c$`, exactly("TestParity/a.b_c"))
}

func TestChosen(t *testing.T) {
	text := []byte(`{"Affine as one 2x2x2 nt f32 bias beta 0": 1, "Affine as one 3x2x2": 0, "conv2d forward 2x1": -1, "conv2d input 2x1": 1, "2x2x2 nt": 5}`)
	fused, fusions := chosen(fusion, text, "0")
	dnn, convolutions := chosen(convolution, text, "-1")
	require.Equal(t, []int{1, 2, 1, 2}, []int{fused, fusions, dnn, convolutions})
}

func TestKeyCosts(t *testing.T) {
	require.Equal(t, []string{
		"a context: 301.5 ms", "a graph of 100 kernels: 0.02 ms to instantiate, 5.1 us the call, 66.1 us until it is done, 0.66 us per kernel",
		"a copy of 4 bytes and a wait: 8.1 us to the device, 9.2 us back", "a product of 4096 x 4096 x 4096: TF32, 312.1 us (3), 440.2 TFLOP/s",
	}, keyCosts("| primary context | 301.5 ms |\n| stream | 1 ms |\n| 10 | 1 | 2 | 3 | 4 |\n| 100 | 0.02 ms | 5.1 us | 66.1 us | 0.66 us |\n"+
		"| 4 | 8.1 us | 9.2 us |\n| 4096 | 1 | 2 |\n| 4096 x 4096 x 4096 | TF32 | 312.1 us (3) | 440.2 |\n"))
}
