# The commands of the house. `make` alone lists them.

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 30s
CHAOS    ?= 50
LIVES    ?= 1000
PKGS     ?= ./...

# Two packages at a time: each may have a Chromium of its own running. make vet
# has looked at all already, and what only a debugger reads takes time to link.
TESTFLAGS ?= -p 2 -timeout 15m -vet=off -ldflags='-s -w'
# Under the race detector a program waits before it ends for what other threads
# may have to report, a second by default; there are hundreds of them here.
export GORACE ?= atexit_sleep_ms=50
# The longest first, or the last of them would run alone.
LONGEST    = $(if $(filter ./...,$(PKGS)),./cmd/tapin $(addprefix ./internal/,page sidecar mcpserver browser/local/canary session oneshot liveview browser/local))

LDFLAGS := -s -w -X tapin/internal/cli.version=$(VERSION)
TOOLS   := bin/tools
# The benchmark is compiled as the program is, of which nearly everything is there then.
BENCH    = CGO_ENABLED=0 $(GO) run -trimpath ./bench

.DEFAULT_GOAL := help
# Every target with a plain name is a command, not a file.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## list these commands
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

up: setup build ## start tapin: find or install a browser, build, run
	@exec bin/tapin up

down: build ## end a running tapin
	@exec bin/tapin down

build: go ## build the static binary, bin/tapin
	@echo "build: bin/tapin $(VERSION)"
	@CGO_ENABLED=0 scripts/build.sh $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/tapin ./cmd/tapin

setup: go ## make sure that Go and a browser are there
	@scripts/setup.sh

setup-test: ## make sure that what only the tests need is there
	@scripts/setup-test.sh

test: setup setup-test vet race ## everything that has to hold: formatting, vet, all tests under the race detector
	@echo "test: all held"

verify: setup build ## show a hand-off from beginning to end, with the program itself
	@scripts/verify/handoff.sh

race: go cc ## the tests under the race detector, nothing else
	@echo "race: $(GO) test -race $(PKGS)"
	@CGO_ENABLED=1 $(GO) test -race $(TESTFLAGS) $(LONGEST) $(PKGS)

slow: setup setup-test cc ## the same, and then the packages and tests that took longest
	@mkdir -p bin
	@CGO_ENABLED=1 $(GO) test -race -json $(TESTFLAGS) $(LONGEST) $(PKGS) > bin/tests.json; code=$$?; scripts/slow.sh bin/tests.json; exit $$code

test-long: setup setup-test cc ## the tests that take their time, which make test leaves out
	@TAPIN_TEST_LONG=1 TAPIN_TEST_GUIDES=1 CGO_ENABLED=1 $(GO) test -race -p 2 -timeout 60m $(PKGS)

lint: vet vet-darwin $(TOOLS)/golangci-lint ## vet, also for macOS, and golangci-lint (staticcheck is in it), which is built once and takes minutes
	@echo "lint: golangci-lint"
	@$(TOOLS)/golangci-lint run $(PKGS)

# Built as the tests are: what is compiled for one serves the other.
vet: go cc ## gofmt and go vet
	@echo "vet: gofmt"
	@bad=$$(find . -name '*.go' -not -path './bin/*' -not -path '*/node_modules/*' -exec gofmt -l {} +); \
	  if [ -n "$$bad" ]; then echo "gofmt would change:"; echo "$$bad"; exit 1; fi
	@echo "vet: go vet"
	@CGO_ENABLED=1 $(GO) vet -race $(PKGS)

vet-darwin: go ## go vet as on macOS
	@echo "vet: go vet, as on macOS"
	@GOOS=darwin CGO_ENABLED=0 $(GO) vet $(PKGS)

fmt: go ## gofmt everything
	@gofmt -w cmd internal *.go

vuln: go $(TOOLS)/govulncheck ## look for known vulnerabilities, where the database can be reached
	@out=$$($(TOOLS)/govulncheck $(PKGS) 2>&1); code=$$?; printf '%s\n' "$$out"; \
	  case "$$out" in *"fetching vulnerabilities"*) \
	    echo "vuln: NOTHING WAS CHECKED: the database of vulnerabilities cannot be reached from here"; exit 0;; esac; \
	  exit $$code

fuzz: go ## every fuzz target for FUZZTIME (30s) each
	@scripts/fuzz.sh $(FUZZTIME) $(PKGS)

chaos: setup cc ## the crash tests in full: CHAOS (50) kills each, and LIVES (1000) rounds of homes that live
	TAPIN_CHAOS=$(CHAOS) TAPIN_CHAOS_LIVES=$(LIVES) CGO_ENABLED=1 $(GO) test -race -run Chaos -count=1 -p 1 -timeout 240m $(PKGS)

soak: setup build ## fifteen minutes of work, and the long-running tests: memory, goroutines and descriptors must stay flat
	@$(BENCH) -peers=false -only soak
	TAPIN_TEST_SOAK=1 TAPIN_TEST_LONG=1 $(GO) test -run Soak -count=1 -p 1 -v -timeout 120m $(PKGS)

# One benchmark, in bench/; a part of it by the name of its suite. The peers come
# from npm at pinned versions, and nothing of theirs is run while they are put there.
bench: setup build bench/peers/node_modules ## measure everything beside raw CDP and the peers; prints one table (needs Node and npm)
	@$(BENCH)

bench-live: setup build ## the live view: a tap until it is seen, pictures a second, twenty viewers, a killed sidecar
	@$(BENCH) -peers=false -only socket,glass,crowd,kill

bench-hands: setup build bench/peers/node_modules ## click through hard pages beside playwright-core (needs Node and npm)
	@$(BENCH) -only hands

bench-oneshots: setup build bench/peers/node_modules ## one-shots, cold and warm, beside playwright-core (needs Node and npm)
	@$(BENCH) -only oneshots

bench-tokens: setup build bench/peers/node_modules ## tokens of a snapshot beside the peers that speak MCP (needs Node and npm)
	@$(BENCH) -only tokens

bench-telegram: setup build ## what an owner waits for in the chat: announcement, relay, screenshot
	@$(BENCH) -peers=false -only chat

bench-smoke: setup build ## only check that the benchmark still runs
	@$(BENCH) -smoke

bench/peers/node_modules: bench/peers/package.json
	@scripts/need.sh node
	@echo "bench: putting the peers into bench/peers (once)"
	@cd bench/peers && npm install --no-package-lock --no-audit --no-fund --silent --ignore-scripts
	@touch $@

verify-browserbase: setup ## the official Browserbase SDK against our stand-in for it (needs Node and npm)
	@GO='$(GO)' scripts/verify/browserbase.sh

verify-guides: setup ## follow every command of the README and the guides
	@TAPIN_TEST_GUIDES=1 $(GO) test ./cmd/tapin -run TestTheGuidesCanBeFollowed -count=1 -v -timeout 15m

verify-fresh: build ## a machine that has never seen tapin, and where beginners get stuck (as root, in a container)
	@scripts/verify/fresh.sh

man: build ## the man pages, into bin/man
	@bin/tapin man --into bin/man

verify-mcp: setup build ## the TypeScript SDK and the MCP inspector against tapin (needs Node and npm)
	@scripts/verify/mcp.sh bin/tapin

verify-telegram: setup build ## a login hand-off over another project's Bot API (needs Node and npm)
	@scripts/verify/telegram.sh bin/tapin

web: setup web/node_modules ## the pages: types, properties, a real browser, axe (needs Node and npm)
	@cd web && node_modules/.bin/tsc -p . && node --test test/*.test.js

screenshots: setup web/node_modules ## every state of the pages into bin/screenshots, a choice into docs/img
	@node web/dev/screenshots.js bin/screenshots
	@SCALE=2 node web/dev/screenshots.js docs/img $(SHOTS)
	@$(GO) run ./web/dev shrink docs/img
	@$(MAKE) --no-print-directory screenshots-terminal

screenshots-terminal: setup build ## what tapin shows in a terminal into bin/screenshots, the README's into docs/img
	@$(GO) run ./scripts/terminal bin/tapin bin/screenshots
	@TAPIN_TEST_WRITE_DOCS=1 $(GO) test ./cmd/tapin -run TestTheTerminalInTheREADMEIsReal -count=1

docs: go ## write the references in docs anew: settings, commands, routes and codes, MCP tools
	@TAPIN_TEST_WRITE_DOCS=1 $(GO) test ./cmd/tapin -run 'TestTheReference' -count=1

licenses: go ## print the licences of everything that is in the program
	@$(GO) run ./scripts/licenses

release-dry-run: go ## build all that a release has, twice, compare, and publish nothing
	@VERSION='$(VERSION)' GO='$(GO)' scripts/release.sh

SHOTS := again code console console-dark console-laptop console-stats driving driving-dark finished keyboard laptop laptop-dark more more-dark number permission watching

# Pinned, for tests only; nothing of it is shipped.
web/node_modules: web/package.json web/package-lock.json
	@cd web && npm ci --no-audit --no-fund --silent
	@touch $@

tools: $(TOOLS)/golangci-lint $(TOOLS)/staticcheck $(TOOLS)/govulncheck ## build the pinned tools into bin/tools

# Built once from the tools module, and again when its pins change.
$(TOOLS)/golangci-lint $(TOOLS)/staticcheck $(TOOLS)/govulncheck: tools/go.mod tools/go.sum
	@scripts/need.sh go
	@echo "tools: building $(@F) (once; a few minutes on a small machine)"
	@mkdir -p $(TOOLS)
	@cd tools && CGO_ENABLED=0 GOBIN='$(CURDIR)/$(TOOLS)' $(GO) install $$($(GO) list -f '{{.ImportPath}}' tool | grep '/$(@F)$$')
	@touch $@

clean: ## remove what was built
	rm -rf bin

go:
	@scripts/need.sh go

cc:
	@scripts/need.sh cc
