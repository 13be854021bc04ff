# All targets work in a fresh clone and need only Go, except race and gpu, which need a C compiler too, and ci, whose
# script says what it needs.

GO         ?= go
STATICCHECK = $(GO) tool -modfile=tools/go.mod staticcheck
PKG        ?= ./...
# The packages with many goroutines, as in the step race of .ci/run.
CONCURRENT  = ./collective/... ./trainer ./trainer/job/... ./trainer/launch/... ./trainer/store ./trainer/paramserver/... ./trainer/sgd

.DEFAULT_GOAL := help
.PHONY: help build static gpu check fmt fmt-check vet staticcheck test race bench pgo cross ci clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "PKG=./collective/... limits test, bench, vet and staticcheck to some packages."

build: ## build the programs into bin, without cgo
	CGO_ENABLED=0 $(GO) build -o bin/ ./cmd/...

static: ## build static programs, which cannot use OpenBLAS
	CGO_ENABLED=0 $(GO) build -tags static -o bin/ ./cmd/...

gpu: ## build for NVIDIA GPUs, with cgo; fetches CUDA's header if it is missing
	variables="$$(scripts/cuda-headers.sh --env)" && eval "$$variables" && $(GO) build -tags gpu -o bin/ ./cmd/...

check: fmt-check vet staticcheck ## all checks that run no tests

fmt: ## format all Go files
	gofmt -w .

fmt-check:
	@files=$$(gofmt -l .) && if [ -n "$$files" ]; then echo "these files are not formatted; run make fmt:"; echo "$$files"; exit 1; fi

vet: ## run go vet
	$(GO) vet $(PKG)

staticcheck: ## run the checks of staticcheck.conf
	$(STATICCHECK) $(PKG)

test: ## run the tests; RINGTRAIN_SLOW_TESTS=1 adds the slow ones
	$(GO) test $(PKG)

race: ## test the concurrent packages under the race detector
	CGO_ENABLED=1 $(GO) test -race $(CONCURRENT)

bench: ## run all benchmarks, without tests
	$(GO) test -run '^$$' -bench . -benchmem $(PKG)

pgo: ## profile small calls again, for the compiler; needs two idle cores
	mkdir -p bin
	for run in 1 2 3; do \
		$(GO) test ./collective/shm -run '^$$' -bench 'AllReduce/^4(096)?$$|SmallCalls' -benchtime 5s \
			-cpuprofile bin/pgo.$$run -o /dev/null || exit; \
	done
	$(GO) tool pprof -proto bin/pgo.1 bin/pgo.2 bin/pgo.3 >cmd/ringtrain/default.pgo
	rm bin/pgo.?

cross: ## type-check everything for other systems
	mkdir -p bin && (cd tools && $(GO) build -o ../bin/crosscheck ./crosscheck)
	bin/crosscheck darwin/arm64 windows/amd64 linux/arm64
	bin/crosscheck -tests=false linux/386

ci: ## run what the build server runs
	.ci/run

clean: ## remove bin
	rm -rf bin
