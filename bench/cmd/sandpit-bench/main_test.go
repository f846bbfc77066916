// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// benched runs the program with arguments.
func benched(args ...string) (stdout string, err error) {
	var out bytes.Buffer
	c := newCommand(&out, &out, func(string) string { return "" })
	c.SetArgs(args)
	err = c.Execute()
	return out.String(), err
}

// A saved run is told and written again as it was, without a server and without root.
func TestBenchMakesAReportOfASavedRun(t *testing.T) {
	const docs = "../../testdata/tree/docs" // through a link, see bench/guard_test.go
	saved := filepath.Join(docs, "benchmarks", "report.json")
	dir := filepath.Join(t.TempDir(), "new")
	out, err := benched("--from", saved, "--report", dir, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out); diff != "" {
		t.Errorf("standard output is not the run (-saved +told):\n%s", diff)
	}
	for _, name := range []string{"benchmarks.md", "benchmarks/report.json", "benchmarks/first-command.svg"} {
		want, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, or it differs from that of the same run in docs", name, err)
		}
	}
	if out, err = benched("--from", saved); err != nil || !strings.Contains(out, "create → first command, sandpit") {
		t.Errorf("as text: %v\n%s", err, out)
	}
}

func TestBenchSaysWhatItCannotMakeAReportOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("{}x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no report":             {[]string{"--from", file}, "is no report of this version"},
		"measured and saved":    {[]string{"--from", file, "--quick"}, "--quick has no effect"},
		"a file as a directory": {[]string{"--report", file, "--parts", "exec", "--program", os.Args[0]}, "cannot be written to"},
		"no server":             {[]string{"--program", file + "-none"}, "is not there"},
	} {
		if _, err := benched(c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}
