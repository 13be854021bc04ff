# All targets work in a fresh clone with Go alone; race needs a C compiler too.

GO         ?= go
STATICCHECK = $(GO) tool -modfile=tools/go.mod staticcheck
PKG        ?= ./...
# Where concurrency lives. The rest is pure or single-threaded code.
CONCURRENT  = ./collective/... ./trainer/launch/...

.DEFAULT_GOAL := help
.PHONY: help build static gpu check fmt fmt-check vet staticcheck test race bench cross ci clean

help: ## say what the targets are
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "PKG=./collective/... limits test, bench, vet and staticcheck to packages."

build: ## build the programs into bin, without cgo
	CGO_ENABLED=0 $(GO) build -o bin/ ./cmd/...

static: ## the same as static files, which use no OpenBLAS
	CGO_ENABLED=0 $(GO) build -tags static -o bin/ ./cmd/...

gpu: ## the same for NVIDIA GPUs, with cgo; the header is fetched if there is none
	eval "$$(scripts/cuda-headers.sh --env)" && $(GO) build -tags gpu -o bin/ ./cmd/...

check: fmt-check vet staticcheck ## all that needs no test run

fmt: ## format all Go files
	gofmt -w .

fmt-check:
	@files=$$(gofmt -l .) && if [ -n "$$files" ]; then echo "not formatted; run make fmt:"; echo "$$files"; exit 1; fi

vet: ## go vet
	$(GO) vet $(PKG)

staticcheck: ## staticcheck, with the checks of staticcheck.conf
	$(STATICCHECK) $(PKG)

test: ## all tests but the slow ones, which RINGTRAIN_SLOW_TESTS=1 adds
	$(GO) test $(PKG)

race: ## the concurrent packages' tests under the race detector
	CGO_ENABLED=1 $(GO) test -race $(CONCURRENT)

bench: ## all benchmarks, without tests
	$(GO) test -run '^$$' -bench . -benchmem $(PKG)

cross: ## type-check everything for other systems
	mkdir -p bin && (cd tools && $(GO) build -o ../bin/crosscheck ./crosscheck)
	bin/crosscheck darwin/arm64 windows/amd64 linux/arm64

ci: ## what the build server runs
	.ci/run

clean: ## remove what make built
	rm -rf bin
