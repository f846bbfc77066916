// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/api/mcp/toolset"
)

// TestWhatRESTCanDoAToolDoes holds the last column of the table of docs/api.md: every operation
// of REST has one row with the tools that do the same, which exist, or with the reason why
// there is none.
func TestWhatRESTCanDoAToolDoes(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../rest/testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var rest struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(b, &rest); err != nil {
		t.Fatal(err)
	}
	open := make(map[string]bool) // operations that have no row yet
	for _, methods := range rest.Paths {
		for _, op := range methods {
			open[op.OperationID] = true
		}
	}
	if len(open) < 50 {
		t.Fatalf("the document has %d operations only", len(open))
	}
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| REST | Go client | CLI | MCP |\n| --- | --- | --- | --- |\n")
	tools := toolNames(listed(t, openWith(t, toolset.Groups()...).alice()))
	rows := 0
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		if len(cells) != 6 {
			break
		}
		rows++
		for op := range strings.SplitSeq(cells[1], ",") {
			if op = strings.TrimSpace(op); !open[op] {
				t.Errorf("%s is no operation, or has two rows", op)
			}
			delete(open, op)
		}
		does, some := cells[4], false
		for _, m := range regexp.MustCompile("`([a-z]+_[a-z_]+)`").FindAllStringSubmatch(does, -1) {
			known := slices.Contains(tools, m[1])
			some = some || known
			if !known && m[1] != "run_id" {
				t.Errorf("%s: there is no tool %s", cells[1], m[1])
			}
		}
		if why, none := strings.CutPrefix(strings.TrimSpace(does), "none: "); !some && (!none || len(why) < 20) {
			t.Errorf("%s: neither a tool nor a reason", cells[1])
		}
	}
	if rows == 0 {
		t.Fatal("docs/api.md has no such table")
	}
	if len(open) > 0 {
		t.Errorf("docs/api.md does not say which tool does %v, or why none", slices.Sorted(maps.Keys(open)))
	}
}

// TestEveryToolIsToldOf: a tool that people do not read of is one that they miss.
func TestEveryToolIsToldOf(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(page), "### What REST can do")
	for _, tool := range toolNames(listed(t, openWith(t, toolset.Groups()...).alice())) {
		if !strings.Contains(before, "`"+tool+"`") {
			t.Errorf("docs/mcp.md says nothing of %s", tool)
		}
	}
	for _, g := range toolset.Groups() {
		if !strings.Contains(before, "| "+g+" | ") {
			t.Errorf("docs/mcp.md says nothing of the group %s", g)
		}
	}
}

// TestWhatRESTTakesAToolTakes holds the last column of the second table of docs/api.md: the tools and arguments that it names
// for a field exist; else there is a reason why none has it.
func TestWhatRESTTakesAToolTakes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	arguments := make(map[string]bool)
	for _, tool := range listed(t, openWith(t, toolset.Groups()...).alice()).Tools {
		var schema struct{ Properties map[string]json.RawMessage }
		b, err := json.Marshal(tool.InputSchema)
		if err == nil {
			err = json.Unmarshal(b, &schema)
		}
		if err != nil {
			t.Fatal(err)
		}
		for name := range schema.Properties {
			arguments[tool.Name+"."+name] = true
		}
	}
	_, table, _ := strings.Cut(string(page), "| REST | Fields | Go | CLI | MCP |\n| --- | --- | --- | --- | --- |\n")
	rows := 0
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		if len(cells) != 7 {
			break
		}
		rows++
		cell := strings.TrimSpace(cells[5])
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1)
		for _, name := range names {
			if !arguments[name[1]] {
				t.Errorf("%s %s: there is no argument %s", cells[1], cells[2], name[1])
			}
		}
		if why, none := strings.CutPrefix(cell, "none: "); len(names) == 0 && (!none || len(why) < 20) {
			t.Errorf("%s %s: neither an argument nor a reason", cells[1], cells[2])
		}
	}
	if rows < 50 {
		t.Fatalf("the table of fields in docs/api.md has %d rows", rows)
	}
}
