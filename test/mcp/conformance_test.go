// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/internal/packagestest"
)

// suite is the script of the official conformance suite.
const suite = "@modelcontextprotocol/conformance/dist/index.js"

// shipped are the scenarios that the product is held to as it is shipped, without
// tools of the suite's own.
var shipped = []string{
	"server-initialize", "server-stateless", "ping", "completion-complete", "tools-list", "server-sse-multiple-streams",
	"resources-list", "resources-subscribe", "resources-unsubscribe", "sep-2164-resource-not-found", "prompts-list",
	"dns-rebinding-protection", "caching", "http-header-validation", "server-session-lifecycle",
	"input-required-result-unsupported-methods", "input-required-result-validate-input",
}

// tasks are the scenarios of the extension Tasks that check something.
var tasks = []string{
	"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal", "tasks-mrtr-input",
	"tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-required-task-error", "tasks-mrtr-composition",
}

// baseline lists what of them fails, each with its reason.
const baseline = "baseline.yaml"

// result is a line of the suite's summary.
var result = regexp.MustCompile(`(?m)^✓ (\S+): ([1-9]\d*) passed, 0 failed`)

func TestEveryRequiredScenarioPassesThroughTheFixtures(t *testing.T) {
	p := needPackages(t)
	address := fixture(t)
	for revision, scored := range map[string]int{"2025-11-25": 30, "2026-07-28": 37} {
		t.Run(revision, func(t *testing.T) {
			list, err := p.Command(t.Context(), suite, "list", "--requirements", revision, "--server").CombinedOutput()
			if err != nil {
				t.Fatalf("list the scenarios: %v\n%s", err, list)
			}
			_, names, _ := strings.Cut(string(list), "Server scenarios")
			names, _, _ = strings.Cut(names, "Client scenarios")
			wanted := regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(names, -1)
			if len(wanted) != scored {
				t.Errorf("the suite requires %d scenarios, want %d", len(wanted), scored)
			}
			out := conform(t, p, address, "--requirements", revision)
			passed := make(map[string]bool)
			for _, m := range result.FindAllStringSubmatch(out, -1) {
				passed[m[1]] = true
			}
			for _, m := range wanted {
				if !passed[m[1]] {
					t.Errorf("%s did not pass", m[1])
				}
			}
			if revision != "2026-07-28" {
				return
			}
			for _, name := range slices.Concat(tasks, []string{"http-header-validation", "http-custom-header-server-validation", "json-schema-2020-12"}) {
				if !passed[name] {
					t.Errorf("%s, which is not scored, did not pass", name)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

func TestTheShippedServerPassesButForTheBaseline(t *testing.T) {
	p := needPackages(t)
	address := serve(t).proxy(t)
	for _, name := range slices.Concat(shipped, tasks) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conform(t, p, address, "--scenario", name, "--expected-failures", baseline)
		})
	}
}

// conform runs the suite, which has to agree, and gives what it said.
func conform(t *testing.T, p packagestest.NPM, address string, args ...string) string {
	t.Helper()
	cmd := p.Command(t.Context(), suite, append([]string{"server", "--url", address}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the suite: %v\n%s", err, out)
	}
	return string(out)
}

func TestEveryEntryOfTheBaselineHasAReason(t *testing.T) {
	b, err := os.ReadFile(baseline)
	if err != nil {
		t.Fatal(err)
	}
	before := ""
	for line := range bytes.Lines(b) {
		text := strings.TrimSpace(string(line))
		if entry, ok := strings.CutPrefix(text, "- "); ok {
			if !strings.HasPrefix(before, "# ") {
				t.Errorf("%s has no reason in the line above it", entry)
			}
			scenario, _, _ := strings.Cut(entry, ":")
			if !slices.Contains(shipped, scenario) && !slices.Contains(tasks, scenario) {
				t.Errorf("%s is of no scenario that is run", entry)
			}
		}
		before = text
	}
}
