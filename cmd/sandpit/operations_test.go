// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/place"
)

// local are the commands that use no operation, or none of their own.
var local = []string{
	"bench", "completion", "connect", "down", "help", "login", "logout", "mcp", "mcp config", "restore", "serve", "server ls",
	"server rm", "server use", "skill export", "tls init", "up", "version",
}

// TestWhatRESTCanDoTheClientAndTheCommandsDo holds the table of docs/api.md: every
// operation of REST has one row, with the methods of the Go client and the commands that
// do the same, which exist, or with the reason why there is none; and no method and no command
// is in no row.
func TestWhatRESTCanDoTheClientAndTheCommandsDo(t *testing.T) {
	operations, methods, commands := operationIDs(t), clientMethods(), commandNames()
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| REST | Go client | CLI | MCP |\n| --- | --- | --- | --- |\n")
	open, quoted := maps.Clone(operations), regexp.MustCompile("`([^`]+)`")
	methodSeen, commandSeen := map[string]bool{}, map[string]bool{}
	check := func(ops, cell, kind string, known, seen map[string]bool) {
		cell = strings.TrimSpace(cell)
		if why, none := strings.CutPrefix(cell, "none: "); none {
			if len(why) < 20 {
				t.Errorf("%s: %q is no reason for having no %s", ops, why, kind)
			}
			return
		}
		names := quoted.FindAllStringSubmatch(cell, -1)
		if len(names) == 0 {
			t.Errorf("%s: neither a %s nor a reason", ops, kind)
		}
		for _, name := range names {
			if !known[name[1]] {
				t.Errorf("%s: there is no %s %s", ops, kind, name[1])
			}
			seen[name[1]] = true
		}
	}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		if len(cells) != 6 {
			break
		}
		for op := range strings.SplitSeq(cells[1], ",") {
			if op = strings.TrimSpace(op); !open[op] {
				t.Errorf("%s is no operation, or has two rows", op)
			}
			delete(open, op)
		}
		check(cells[1], cells[2], "method", methods, methodSeen)
		check(cells[1], cells[3], "command", commands, commandSeen)
	}
	if len(open) > 0 {
		t.Errorf("docs/api.md has no row for %v", slices.Sorted(maps.Keys(open)))
	}
	for name := range methods {
		if !methodSeen[name] && !strings.Contains(name, ".") {
			t.Errorf("no row of docs/api.md names the client's %s", name)
		}
	}
	for name := range commands {
		if !commandSeen[name] && !slices.Contains(local, name) {
			t.Errorf("no row of docs/api.md names the command %q", name)
		}
	}
}

// operationIDs returns the operations of REST.
func operationIDs(t *testing.T) map[string]bool {
	t.Helper()
	b, err := os.ReadFile("../../api/rest/testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var rest struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(b, &rest); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]bool)
	for _, methods := range rest.Paths {
		for _, op := range methods {
			out[op.OperationID] = true
		}
	}
	if len(out) < 150 {
		t.Fatalf("the document has %d operations only", len(out))
	}
	return out
}

// clientMethods returns the methods of the Go client; those of what it opens stand below its name.
func clientMethods() map[string]bool {
	out := make(map[string]bool)
	for prefix, typ := range map[string]reflect.Type{
		"": reflect.TypeFor[*client.Client](), "Process.": reflect.TypeFor[*client.Process](), "Shell.": reflect.TypeFor[*client.Shell](),
	} {
		for i := range typ.NumMethod() {
			out[prefix+typ.Method(i).Name] = true
		}
	}
	return out
}

// commandNames returns the commands that do something, without "sandpit" before them.
func commandNames() map[string]bool {
	out := make(map[string]bool)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden { // another name of a command that is there
			return
		}
		if name, below := strings.CutPrefix(c.CommandPath(), "sandpit "); below && c.IsAvailableCommand() && !isGroup(c) {
			out[name] = true
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&app.App{Finder: place.Finder{Getenv: func(string) string { return "" }}}))
	return out
}

// isGroup reports whether a command is there for the commands below it alone.
func isGroup(c *cobra.Command) bool {
	return c.HasSubCommands() && reflect.ValueOf(c.RunE).Pointer() == reflect.ValueOf(app.Group).Pointer()
}
