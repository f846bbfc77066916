// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/cmd/sandpit/internal/synonym"
)

// The command that a synonym leads to is there, and the synonym is not a command itself.
func TestSynonyms(t *testing.T) {
	for name, line := range synonym.Commands() {
		var stdout, stderr bytes.Buffer
		a := &app.App{Stdout: &stdout, Stderr: &stderr, Finder: place.Finder{Getenv: func(string) string { return "" }}}
		root := newRoot(a)
		command, _, _ := strings.Cut(line, ":")
		path := strings.Fields(command)[1:]
		if c, _, err := root.Find(path); err != nil || c.CommandPath() != "sandpit "+strings.Join(path, " ") {
			t.Errorf("%s leads to %q, which is not a command: %v", name, line, err)
		}
		if c, _, err := root.Find(strings.Fields(name)); err == nil && c.CommandPath() == "sandpit "+name {
			t.Errorf("%s is a command itself: %s", name, c.CommandPath())
		}
		root.SetArgs(append(strings.Fields(name), "x", "--format", "y"))
		err := root.Execute()
		if want := "there is no command \"sandpit " + name + "\"; here it is: " + line; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}
