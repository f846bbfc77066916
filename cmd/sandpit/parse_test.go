// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"
)

func TestCopyEndsTellSandboxFromFile(t *testing.T) {
	for arg, want := range map[string]endpoint{
		"web:main.py":   {"web", "main.py"},
		"web:":          {"web", "."},
		"web:/etc/a:b":  {"web", "/etc/a:b"},
		"a:b:/x":        {"a:b", "/x"},
		"web:a:b":       {"web", "a:b"},
		"web:a/b:/c":    {"web", "a/b:/c"},
		"main.py":       {"", "main.py"},
		"./odd:name":    {"", "./odd:name"},
		"/tmp/odd:name": {"", "/tmp/odd:name"},
		"dir/odd:name":  {"", "dir/odd:name"},
		":x":            {"", ":x"},
		"-":             {"", "-"},
		"..":            {"", ".."},
	} {
		if got := parseEnd(arg); got != want {
			t.Errorf("%q is %+v, want %+v", arg, got, want)
		}
	}
}

func TestNamesOutOfASandboxAreNamesOnly(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "-rf": true, "a b": true, "a\nb": true, "...": true, `a\b`: true,
		"": false, ".": false, "..": false, "a/b": false, "/": false, "../x": false, "a\x00": false,
	} {
		if got := plainName(name); got != want {
			t.Errorf("%q is a name: %v, want %v", name, got, want)
		}
	}
}

func TestTextSteersNoTerminal(t *testing.T) {
	const hostile = "a\x1b[2J\r\n\tb\u009b\u202e\x7f√"
	if got, want := printable(hostile), `a\u001b[2J\u000d  b\u009b\u202e\u007f√`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var b bytes.Buffer
	if err := table(&b, []string{"NAME", "ID"}, [][]string{{"\x1b[31mred", "1"}, {"", "22"}}); err != nil {
		t.Fatal(err)
	}
	if want := "NAME            ID\n\\u001b[31mred   1\n-               22\n"; b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestLengthsOfTimeAndSizes(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"90": 90 * time.Second, "90s": 90 * time.Second, "15m": 15 * time.Minute, "7d": 7 * 24 * time.Hour, "1h30m": 90 * time.Minute, "0": 0,
	} {
		var p period
		if err := p.Set(in); err != nil || p.d != want {
			t.Errorf("%q is %v and %v, want %v", in, p.d, err, want)
		}
	}
	for _, in := range []string{"", "soon", "-1", "-1s", "1.5d", "99999999999999d", "d"} {
		var p period
		if err := p.Set(in); err == nil || p.given {
			t.Errorf("%q is taken for %v", in, p.d)
		}
	}
	for in, want := range map[string]int{"512": 512, "512M": 512, "512MB": 512, "512MiB": 512, "2G": 2048, "1.5g": 1536} {
		var m megabytes
		if err := m.Set(in); err != nil || m.n != want {
			t.Errorf("%q is %d and %v, want %d", in, m.n, err, want)
		}
	}
	for _, in := range []string{"", "pizza", "-1", "0", "NaN", "inf", "1K", "1e300"} {
		var m megabytes
		if err := m.Set(in); err == nil {
			t.Errorf("%q is taken for %d", in, m.n)
		}
	}
}

func TestTimesAreRelative(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "now", 30 * time.Second: "30 seconds ago", 90 * time.Second: "90 seconds ago", 3 * time.Minute: "3 minutes ago",
		time.Hour: "1 hour ago", 26 * time.Hour: "1 day ago", -2 * time.Hour: "in 2 hours",
	} {
		at := now.Add(-d)
		if got := ago(now, &at); got != want {
			t.Errorf("%v ago is %q, want %q", d, got, want)
		}
	}
	if got := ago(now, nil); got != "" {
		t.Errorf("never is %q, want nothing", got)
	}
}
