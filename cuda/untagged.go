//go:build !gpu

package cuda

const untagged = "this binary is built without -tags gpu: build it with CGO_ENABLED=1 go build -tags gpu ./cmd/ringtrain, after scripts/cuda-headers.sh --env"
