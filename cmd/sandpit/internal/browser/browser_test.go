// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package browser

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAPageIsOpenedByTheProgramThatThereIs(t *testing.T) {
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	program := filepath.Join(dir, "browser")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" > "+said+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	failing := filepath.Join(dir, "failing")
	if err := os.WriteFile(failing, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	with := func(browser string) func(string) string {
		return func(name string) string { return map[string]string{"BROWSER": browser}[name] }
	}
	const page = "http://x.localhost:1/?a=b&c=%20"
	if err := Open("linux", with(program+" --new %s:other"), page); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(said); err != nil || string(got) != "--new\n"+page+"\n" {
		t.Errorf("it was given %q, %v", got, err)
	}
	if err := Open("linux", with(""), page); !errors.Is(err, ErrNone) {
		t.Errorf("without a screen: %v", err)
	}
	if err := Open("linux", with(filepath.Join(dir, "missing")), page); !errors.Is(err, ErrNone) {
		t.Errorf("a program that is not there: %v", err)
	}
	if err := Open("linux", with(failing), page); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("a program that fails: %v", err)
	}
	for _, bad := range []string{"", "--help", "file:///etc/passwd", "javascript:alert(1)", "http:///x"} {
		if err := Open("linux", with(program), bad); err == nil || errors.Is(err, ErrNone) {
			t.Errorf("%q is opened: %v", bad, err)
		}
	}
}

func TestWhichProgramOpensPages(t *testing.T) {
	screen := func(name string) string { return map[string]string{"DISPLAY": ":0"}[name] }
	for goos, want := range map[string]string{"linux": "xdg-open", "darwin": "open", "windows": "rundll32", "freebsd": "xdg-open"} {
		if got := opener(goos, screen); len(got) == 0 || got[0] != want {
			t.Errorf("%s: %v, want %s", goos, got, want)
		}
	}
	if got := opener("darwin", func(string) string { return "firefox -P x" }); !slices.Equal(got, []string{"firefox", "-P", "x"}) {
		t.Errorf("a person's own: %v", got)
	}
}
