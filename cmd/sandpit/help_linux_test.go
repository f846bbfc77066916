// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/place"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestHelp holds what every command says of itself: it is what users read, and
// what scripts are written against.
func TestHelp(t *testing.T) {
	var got bytes.Buffer
	var walk func(path []string, c *cobra.Command)
	walk = func(path []string, c *cobra.Command) {
		var out bytes.Buffer
		root := newRoot(&app.App{Stdout: &out, Stderr: &out, Finder: place.Finder{Getenv: func(string) string { return "" }}, Version: "test"})
		root.SetArgs(append(path, "--help"))
		if err := root.Execute(); err != nil {
			t.Errorf("%v --help: %v", path, err)
		}
		got.WriteString("===== " + c.CommandPath() + "\n" + out.String() + "\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "completion" && sub.Name() != "help" {
				walk(append(path[:len(path):len(path)], sub.Name()), sub)
			}
		}
	}
	walk(nil, newRoot(&app.App{Finder: place.Finder{Getenv: func(string) string { return "" }}}))

	golden := filepath.Join("testdata", "help.golden")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the help has changed (-want +got); if that is meant: go test ./cmd/sandpit -update\n%s", diff)
	}
}
