// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/test/kernels/told"
)

func TestThePlanHasWhatIsWanted(t *testing.T) {
	all, err := planOf(nil)
	if err != nil || len(all.Checks) != len(others) || len(all.Tests) != len(tests) {
		t.Errorf("all: got %+v, %v", all, err)
	}
	some, err := planOf([]string{"layer", "doctor"})
	if err != nil || len(some.Checks) != 1 || some.Checks[0] != "doctor" || len(some.Tests) != 1 || some.Tests[0].Name != "layer" {
		t.Errorf("two: got %+v, %v", some, err)
	}
	if _, err := planOf([]string{"layers"}); err == nil || !strings.Contains(err.Error(), "layer") {
		t.Errorf("an unknown one: got %v, want an error that names those there are", err)
	}
	for _, c := range tests {
		if _, err := os.Stat(filepath.Join("../..", c.folder)); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

func TestTheConsoleIsReadBetweenTheKernelsWords(t *testing.T) {
	console := "SeaBIOS\r\n" + strings.Repeat("x", 3<<20) + string(told.Result{Check: "doctor", OK: true}.Line()) +
		"[  1.0] Oops\r\n" + string(told.Result{Check: "cli", Detail: strings.Repeat("no\n", 50)}.Line()) + "@@kernels {half"
	var got []string
	read(strings.NewReader(console), func(r told.Result) { got = append(got, r.Check) })
	if strings.Join(got, " ") != "doctor cli" {
		t.Errorf("got %q, want the two results", got)
	}
}

func TestTheTableSaysWhatFailedAndWhatDidNotRun(t *testing.T) {
	plan := told.Plan{Checks: []string{"doctor"}, Tests: []told.Test{{Name: "layer"}}}
	pass := []told.Result{{Check: "doctor", OK: true, Seconds: 1}, {Check: "layer", OK: true, Seconds: 2, Detail: "9 passed\nmore"}}
	for _, c := range []struct {
		name    string
		results []told.Result
		err     error
		passed  bool
		says    []string
	}{
		{"AllPassed", pass, nil, true, []string{"6.1.0", "pass 2s (9 passed)"}},
		{"OneFailed", []told.Result{pass[0], {Check: "layer", Detail: "the reason"}}, nil, false, []string{"--- layer on Linux 6.1.0", "the reason", "FAIL"}},
		{"OneIsMissing", pass[:1], errors.New("it took too long"), false, []string{"did not run", "Linux 6.1.0: it took too long"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var table table
			table.add(kernel{release: "6.1.0"}, plan, c.results, c.err)
			var out bytes.Buffer
			table.write(&out)
			for _, want := range c.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("got\n%s\nwant %q in it", &out, want)
				}
			}
			if table.passed() != c.passed {
				t.Errorf("passed: got %v, want %v", table.passed(), c.passed)
			}
		})
	}
}

func TestAKernelsFilesAreFoundWhereItsPackagesHaveThem(t *testing.T) {
	for _, layout := range [][]string{
		{"boot/vmlinuz-1.2", "boot/config-1.2", "lib/modules/1.2/x"},
		{"usr/lib/modules/1.2/vmlinuz", "usr/lib/modules/1.2/config"},
	} {
		k := kernel{release: "1.2", files: t.TempDir()}
		if _, err := k.image(); err == nil {
			t.Error("a kernel without files has an image")
		}
		for _, file := range layout {
			at := filepath.Join(k.files, file)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for what, find := range map[string]func() (string, error){"image": k.image, "config": k.config, "modules": k.modules} {
			if at, err := find(); err != nil || !exists(at) {
				t.Errorf("%v: %s: %q, %v", layout, what, at, err)
			}
		}
	}
}
