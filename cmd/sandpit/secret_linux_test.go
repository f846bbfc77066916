// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/input"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/cmd/sandpit/internal/terminaltest"
	"sandpit.dev/fault"
)

func TestTheValueOfASecretIsReadAsItIs(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, text, want string }{
		{"a line", "opensesame\n", "opensesame"},
		{"a line of another system", "opensesame\r\n", "opensesame"},
		{"no line", "opensesame", "opensesame"},
		{"two newlines", "opensesame\n\n", "opensesame\n"},
		{"lines", "a\nb\n", "a\nb"},
		{"spaces", "  open sesame ", "  open sesame "},
		{"nothing", "", ""},
		{"a newline", "\n", ""},
		{"no UTF-8", "open\xffsesame", ""},
		{"too much", strings.Repeat("x", input.MaxText+1), ""},
	} {
		path := filepath.Join(dir, "value")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for from, read := range map[string]func() (string, error){
			"a file":         func() (string, error) { return secretValue(t.Context(), &app.App{}, "A", "", path) },
			"standard input": func() (string, error) { return secretValue(t.Context(), &app.App{Stdin: in}, "A", "", "") },
		} {
			got, err := read()
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("%s from %s: got %q, %v; want %q", c.name, from, got, err, c.want)
			}
			if err != nil && (!fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "sesame")) {
				t.Errorf("%s from %s: the error is %v", c.name, from, err)
			}
		}
		_ = in.Close()
	}
	env := &app.App{Finder: place.Finder{Getenv: func(name string) string { return map[string]string{"MY_TOKEN": "open\nsesame\n"}[name] }}}
	if got, err := secretValue(t.Context(), env, "A", "MY_TOKEN", ""); err != nil || got != "open\nsesame\n" {
		t.Errorf("from a variable: got %q, %v", got, err)
	}
	if _, err := secretValue(t.Context(), env, "A", "NOT_THERE", ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("from a variable that is not there: %v", err)
	}
	if _, err := secretValue(t.Context(), &app.App{}, "A", "", filepath.Join(dir, "none")); !fault.Is(err, fault.Invalid) {
		t.Errorf("from a file that is not there: %v", err)
	}
}

// At a terminal a person is asked, and what is typed is not shown.
func TestASecretIsTypedWithoutAnEcho(t *testing.T) {
	person, tty := terminaltest.Pair(t)
	var said bytes.Buffer
	type answer struct {
		value string
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		v, err := secretValue(t.Context(), &app.App{Stdin: tty, Stderr: &said}, "TOKEN", "", "")
		got <- answer{v, err}
	}()
	for { // until it listens without an echo
		mode, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if mode.Lflag&unix.ECHO == 0 {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
	if _, err := person.WriteString("opensesame\n"); err != nil {
		t.Fatal(err)
	}
	if x := <-got; x.err != nil || x.value != "opensesame" {
		t.Errorf("got %q, %v", x.value, x.err)
	}
	if said.String() != "value of TOKEN: \n" {
		t.Errorf("it said %q", said.String())
	}
	if mode, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil || mode.Lflag&unix.ECHO == 0 {
		t.Errorf("the echo is off when it has ended (%v)", err)
	}
	// What is written now comes behind whatever was echoed before.
	if _, err := tty.WriteString("end"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, err := person.Read(b)
	if text := string(b[:n]); err != nil || strings.Contains(text, "sesame") || !strings.HasSuffix(text, "end") {
		t.Errorf("the person sees %q, %v", text, err)
	}
}
