# sandpit: `make up` to run it, `make test` to test it; nothing else to know.

SHELL := /bin/bash
GO    ?= go
export CGO_ENABLED ?= 0
export SANDPIT_TEST_IMAGES ?= /var/tmp/sandpit-images

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# The packages of all modules: those that go.work lists.
ALL := ./... ./bench/...
# Those that wait more than they work, and take longest, begin first: three packages at a time fill two cores.
FIRST := ./runtime/native ./runtime/docker ./runtime/kubernetes ./test/... ./engine

# The race detector, but for SQLite: it is C in Go's clothes, which nobody here mends, and takes five times as long under it.
RACE := -race -gcflags='modernc.org/...=-race=false -d=checkptr=0'

# Where the CLI is built and checked without the server, and what it imports without its tests, some of which have one.
CLIENTS := darwin/arm64 windows/amd64
# What knows of the processor, and is built for another one, too.
PROCESSOR := ./linux/... ./runtime/... ./agent/... ./bench/... ./cmd/sandpit-agent

.PHONY: help build console console-check pictures pictures-accepted image bin/sandpit-bench agent up down test peers test-fast lint bench soak kernels setup clean

help: ## Print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

build: agent ## Build bin/sandpit, one static binary with the agent in it
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/sandpit ./cmd/sandpit

agent:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o agent/embedded/bin/sandpit-agent ./cmd/sandpit-agent

image: build ## Build bin/sandpit-image.tar, the server's own image, for docker load
	GOOS= GOARCH= $(GO) run ./deploy/serverimage -program bin/sandpit -version '$(VERSION)' -o bin/sandpit-image.tar

up: setup build ## Set up, start the server, run a first program, say how to connect
	bin/sandpit up --try

down: ## End the server that `make up` started; all data stays
	bin/sandpit down

test: agent ## Run all tests, under the race detector
	@deploy/setup.sh tests
	CGO_ENABLED=1 $(GO) run ./internal/testgate $(RACE) -p 3 -parallel 4 -timeout 40m $(FIRST) $(ALL)
	SANDPIT_TEST_TLS=1 CGO_ENABLED=1 $(GO) run ./internal/testgate $(RACE) -parallel 4 -timeout 10m -run '$(TLS)' ./api/rest ./api/mcp

# The base of the two suites over HTTP, which is run over HTTP/2 and TLS, too; `make soak` runs all of them so.
TLS = ^(TestExec|TestExecStream|TestFiles|TestProcessSocket|TestConnectPort|TestWatch|TestRunCommand|TestEras|TestEndOfSession|TestSSE|TestAStreamThatBrokeGoesOn|TestThroughTheBridge|TestArtifactsAreServed)$$

peers: # what the benchmark is compared with, the images, and the cluster: before the tests, which they would slow down
	CGO_ENABLED=1 $(GO) run ./internal/testgate $(RACE) -timeout 40m -p 1 -run '^(TestPeers|TestBaseImage|TestNamesMeanBaseAndNodeOnceTheyAreBuilt|TestDebiansChromiumRuns|TestItsNodeRunsPods|TestHelmIsBuilt)$$' ./internal/cluster ./bench ./image ./test/script ./test/browser

test-fast: export SANDPIT_TEST_IMAGES = # those of root are root's
test-fast: agent ## Run the tests that any user can, in a minute
	$(GO) test -short -p 4 -parallel 4 $(ALL)

console: ## Build the console's scripts and styles anew, from the packages that its lockfile names
	@deploy/setup.sh tests
	cd console/ui && npm ci --ignore-scripts --silent
	GOWORK=off $(GO) run -C tools ./tstypes -document ../api/rest/testdata/openapi.json -out ../console/ui/src/wire.ts
	console/ui/node_modules/.bin/tsc -p console/ui
	GOWORK=off $(GO) run -C tools ./console -ui ../console/ui -out ../console/dist

console-check: console # What is committed is what the sources make, byte by byte.
	@out=$$(git status --porcelain -- console); if [ -n "$$out" ]; then echo "the console is not what its sources make; commit what make console writes:"; echo "$$out"; exit 1; fi

PICTURES := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sandpit-pictures

console/ui/node_modules:
	cd console/ui && npm ci --ignore-scripts --silent

pictures: agent console/ui/node_modules ## Picture each page of the console, beside the last accepted ones
	rm -rf $(PICTURES)/now && mkdir -p $(PICTURES)
	SANDPIT_TEST_PICTURES=$(PICTURES) $(GO) test ./test/browser -count=1 -timeout 20m -run '^TestTheConsoleIsForEverybody$$' -v | grep -vE '^=== '
	@echo "look at $(PICTURES)/index.html; make pictures-accepted takes them as they are"

pictures-accepted:
	rm -rf $(PICTURES)/accepted && cp -R $(PICTURES)/now $(PICTURES)/accepted

lint: console-check ## Format, vet and staticcheck
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt these files:"; echo "$$out"; exit 1; fi
	GOWORK=off $(GO) build -C bench ./... # by its own go.mod
	$(GO) vet $(ALL) && $$(GOWORK=off $(GO) tool -modfile=tools/go.mod -n staticcheck) $(ALL)
	@$(foreach on,$(CLIENTS),export GOOS=$(word 1,$(subst /, ,$(on))) GOARCH=$(word 2,$(subst /, ,$(on))); echo "the client on $(on)"; \
	$(GO) list -deps -f '{{with .Module}}{{if .Main}}{{range $$.GoFiles}}{{$$.Dir}}/{{.}} {{end}}{{end}}{{end}}' ./cmd/sandpit ./client | \
	while read -r files; do $(GO) vet $$files || exit; done && $(GO) vet ./cmd/sandpit && $(GO) build -o /dev/null ./cmd/sandpit || exit;)
	CGO_ENABLED=0 GOARCH=arm64 $(GO) build $(ALL) && CGO_ENABLED=0 GOARCH=arm64 $(GO) vet $(PROCESSOR)

bin/sandpit-bench: build # the program of `sandpit bench`
	$(GO) build -C bench -trimpath -o ../bin/sandpit-bench ./cmd/sandpit-bench

bench: setup bin/sandpit-bench ## Measure, beside what a user would pick instead
	bin/sandpit-bench --fetch

soak: setup build ## The long form of the tests' campaigns
	SANDPIT_TEST_TLS=1 $(GO) test ./api/rest ./api/mcp
	SANDPIT_TEST_ENGINES=trixie $(GO) test -timeout 1h -run '^(TestDriver|TestMappedUsers|TestRootless|TestPodman)$$' ./runtime/docker # Docker 26 and Podman 5.4
	SANDPIT_SOAK=1 $(GO) test -timeout 1h -run '^TestDriver$$' ./runtime/kubernetes # all of the suite, and gVisor
	SANDPIT_SOAK=1 CGO_ENABLED=1 $(GO) run ./internal/testgate -timeout 3h -run 'Soak|Leak|Survive|Many|Malformed|Hostile' $(ALL)

FUZZTIME ?= 30s
fuzz: agent ## Fuzz every parser of what comes from outside, FUZZTIME each
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z]+' . | sort | while IFS=: read -r file func; do \
	echo "$$file $${func#func }"; $(GO) test "$$(dirname $$file)" -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) || exit; done

kernels: ## Check on the kernels of Debian's releases, in virtual machines (hours, as root)
	$(GO) run ./test/kernels

setup: ## Install what is missing (Debian and Ubuntu, as root)
	@deploy/setup.sh

clean: ## Remove what was built
	rm -rf bin agent/embedded/bin/sandpit-agent
