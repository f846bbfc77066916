// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/place"
)

// fieldsOf are the operations whose fields the second table of docs/api.md has, with the type of their body in Go.
var fieldsOf = map[string]reflect.Type{
	"createSandbox": reflect.TypeFor[v1.CreateSandbox](), "updateSandbox": reflect.TypeFor[v1.UpdateSandbox](), "stopSandbox": reflect.TypeFor[v1.StopSandbox](),
	"forkSandbox": reflect.TypeFor[v1.ForkSandbox](), "promoteSandbox": reflect.TypeFor[v1.PromoteSandbox](), "exec": reflect.TypeFor[v1.Exec](), "shellExec": reflect.TypeFor[v1.Exec](),
	"startProcess": reflect.TypeFor[v1.StartProcess](), "createShell": reflect.TypeFor[v1.CreateShell](), "createContext": reflect.TypeFor[v1.CreateContext](), "runCode": reflect.TypeFor[v1.RunCode](),
	"changeFile": reflect.TypeFor[v1.ChangeFile](), "listSandboxes": reflect.TypeFor[client.ListQuery](), "listProcesses": reflect.TypeFor[client.ProcessQuery](),
}

// TestWhatRESTTakesTheClientAndTheCommandsTake holds the second table of docs/api.md: each field that those operations take
// has one row, with the type that has it in Go and the flag that sets it, which exist, or with the reason why there is none.
func TestWhatRESTTakesTheClientAndTheCommandsTake(t *testing.T) {
	open, quoted := fieldNames(t), regexp.MustCompile("`([^`]+)`")
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| REST | Fields | Go | CLI | MCP |\n| --- | --- | --- | --- | --- |\n")
	if !found {
		t.Fatal("docs/api.md has no table of fields")
	}
	commands := flagsOfCommands()
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		if len(cells) != 7 {
			break
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		ops, fields := strings.Split(cells[1], ", "), strings.Split(cells[2], ", ")
		for _, op := range ops {
			for _, field := range fields {
				if !open[[2]string{op, field}] {
					t.Errorf("%s has no field %s, or it has two rows", op, field)
				}
				delete(open, [2]string{op, field})
			}
		}
		each := func(cell, kind string, check func(name string) bool) {
			t.Helper()
			if why, none := strings.CutPrefix(cell, "none: "); none {
				if len(why) < 20 {
					t.Errorf("%s %s: %q is no reason for having no %s", cells[1], cells[2], why, kind)
				}
				return
			}
			names := quoted.FindAllStringSubmatch(cell, -1)
			if len(names) == 0 {
				t.Errorf("%s %s: neither a %s nor a reason", cells[1], cells[2], kind)
			}
			for _, name := range names {
				if !check(name[1]) {
					t.Errorf("%s %s: there is no %s %s", cells[1], cells[2], kind, name[1])
				}
			}
		}
		types := make(map[string]bool) // that the row has to name
		for _, op := range ops {
			types[fieldsOf[op].Name()] = true
		}
		each(cells[3], "Go", func(name string) bool {
			typ, field, ofQuery := strings.Cut(name, ".")
			i := slices.IndexFunc(ops, func(op string) bool { return fieldsOf[op].Name() == typ })
			if i < 0 {
				return false
			}
			delete(types, typ)
			of := fieldsOf[ops[i]]
			if ofQuery {
				_, ok := of.FieldByName(field)
				return ok
			}
			return !slices.ContainsFunc(fields, func(f string) bool { return !hasJSON(of, f) })
		})
		if len(types) > 0 && !strings.HasPrefix(cells[3], "none: ") {
			t.Errorf("%s %s: the column of Go lacks %v", cells[1], cells[2], types)
		}
		each(cells[4], "command or flag", func(name string) bool {
			command, flag, flagged := strings.Cut(name, " --")
			c := commands[command]
			return c != nil && (!flagged || c.Flags().Lookup(flag) != nil)
		})
	}
	for left := range open {
		t.Errorf("docs/api.md has no row for %s of %s", left[1], left[0])
	}
}

// hasJSON reports whether a type has a field of that name in JSON, itself or by what it embeds.
func hasJSON(typ reflect.Type, name string) bool {
	return slices.ContainsFunc(reflect.VisibleFields(typ), func(f reflect.StructField) bool {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return tag == name
	})
}

// fieldNames returns what the operations of the table take, by operation and name.
func fieldNames(t *testing.T) map[[2]string]bool {
	t.Helper()
	b, err := os.ReadFile("../../api/rest/testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Ref        string `json:"$ref"`
		Properties map[string]json.RawMessage
	}
	var rest struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct{ Name, In string }
			RequestBody struct {
				Content map[string]struct{ Schema schema }
			}
		}
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal(b, &rest); err != nil {
		t.Fatal(err)
	}
	out, seen := make(map[[2]string]bool), make(map[string]bool)
	for _, methods := range rest.Paths {
		for _, op := range methods {
			if fieldsOf[op.OperationID] == nil {
				continue
			}
			seen[op.OperationID] = true
			for _, p := range op.Parameters {
				if p.In == "query" {
					out[[2]string{op.OperationID, p.Name}] = true
				}
			}
			body := op.RequestBody.Content["application/json"].Schema
			if name, ok := strings.CutPrefix(body.Ref, "#/components/schemas/"); ok {
				body = rest.Components.Schemas[name]
			}
			for name := range body.Properties {
				out[[2]string{op.OperationID, name}] = true
			}
		}
	}
	if len(seen) != len(fieldsOf) || len(out) < 200 {
		t.Fatalf("the document has %d of %d operations, with %d fields only", len(seen), len(fieldsOf), len(out))
	}
	return out
}

// flagsOfCommands returns the commands by their names, without "sandpit" before them.
func flagsOfCommands() map[string]*cobra.Command {
	out := make(map[string]*cobra.Command)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		out[strings.TrimPrefix(c.CommandPath(), "sandpit ")] = c
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&app.App{Finder: place.Finder{Getenv: func(string) string { return "" }}}))
	return out
}
