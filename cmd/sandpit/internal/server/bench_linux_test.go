// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/fault"
)

func TestTheProgramThatMeasuresIsBesideThisOneOrTold(t *testing.T) {
	a := &app.App{Stderr: io.Discard}
	dir := t.TempDir()
	own := filepath.Join(dir, "sandpit")
	if got, err := benchProgram(a, own); !fault.Is(err, fault.Unavailable) || fault.As(err).Remedy == "" {
		t.Errorf("where there is none: got %q, %v; want an error that says how to get it", got, err)
	}
	want := filepath.Join(dir, benchName)
	if err := os.WriteFile(want, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := benchProgram(a, own); err != nil || got != want {
		t.Errorf("beside it: got %q, %v; want %q", got, err, want)
	}
}

func TestTheProgramThatMeasuresIsBuiltInACheckout(t *testing.T) {
	a := &app.App{Stderr: io.Discard}
	checkout := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                    "module example.org/bench\n",
		"cmd/sandpit-bench/main.go": "package main\n\nfunc main() {}\n",
	} {
		path := filepath.Join(checkout, "bench", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := filepath.Join(checkout, "bin", benchName)
	if got, err := benchProgram(a, filepath.Join(checkout, "bin", "sandpit")); err != nil || got != want {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
	if _, err := os.Stat(want); err != nil {
		t.Error(err)
	}
}
