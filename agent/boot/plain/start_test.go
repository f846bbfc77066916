// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/agent/boot/plain"
)

// An agent whose disk has a later start ends itself, and with that all that it started.
func TestALaterStartOfItsDisk(t *testing.T) {
	b := start(t, plain.Config{UID: 1000, GID: 1000, Start: &plain.Start{Number: 7}}, syscall.CLONE_NEWPID)
	file := b.path("log") + "/start"
	if got, err := os.ReadFile(file); err != nil || string(got) != "7" {
		t.Fatalf("it notes %q, %v", got, err)
	}
	for _, no := range []string{"6", "", "no number", strings.Repeat("9", 40)} { // an earlier one, and what others may write there
		if err := os.WriteFile(file, []byte(no), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := run(t, b.client, agent.Command{Shell: "echo goes on"}); got != "goes on\n" {
		t.Fatalf("got %q", got)
	}
	if err := os.WriteFile(file, []byte("8"), 0o600); err != nil {
		t.Fatal(err)
	}
	<-b.over
}

// One that begins late, as on a machine that was cut off, does not begin.
func TestAStartBehindALaterOne(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/start", []byte("8"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := plain.Note(7, dir); err == nil || err.Error() != "a later start has the disk: 8" {
		t.Errorf("got %v", err)
	}
	if err := plain.Note(9, dir); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(dir + "/start"); err != nil || string(got) != "9" {
		t.Errorf("it notes %q, %v", got, err)
	}
}

// Root of the sandbox may put anything in the place of the number, and of the file that it is written to first: the next start goes on.
func TestWhatRootPutsInThePlaceOfTheNumber(t *testing.T) {
	for what, put := range map[string]func(path string) error{
		"a directory":    func(path string) error { return os.MkdirAll(path+"/full", 0o700) },
		"a link":         func(path string) error { return os.Symlink("/etc/passwd", path) },
		"a pipe":         func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"too large":      func(path string) error { return os.WriteFile(path, []byte("9223372036854775807"), 0o600) },
		"less than zero": func(path string) error { return os.WriteFile(path, []byte("-5"), 0o600) },
	} {
		for _, name := range []string{"/start", "/start.new"} {
			dir := t.TempDir()
			if err := put(dir + name); err != nil {
				t.Fatal(err)
			}
			if err := plain.Note(9, dir); err != nil {
				t.Errorf("%s at %s: %v", what, name, err)
			}
			if got, err := os.ReadFile(dir + "/start"); err != nil || string(got) != "9" {
				t.Errorf("%s at %s: it notes %q, %v", what, name, got, err)
			}
		}
	}
}
