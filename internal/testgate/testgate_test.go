// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/internal/skiptest"
)

// gate runs the gate over a module of one file, whose tests can distinguish a first run from a
// later one by firstTime.
func gate(t *testing.T, tests string, flags ...string) error {
	t.Helper()
	skiptest.WithShort(t, "tests of a module are built and run")
	dir := t.TempDir()
	mark := filepath.Join(dir, "mark")
	source := "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n" +
		"func firstTime(name string) bool {\n\tname = " + quote(mark) + " + name\n\t_, err := os.Stat(name)\n\t_ = os.WriteFile(name, nil, 0o600)\n\treturn err != nil\n}\n\n" +
		"var _ = testing.Short\n\n" + tests
	for name, content := range map[string]string{"go.mod": "module example.test/p\n\ngo 1.26\n", "p_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("CI", "")
	t.Setenv("GOFLAGS", "-mod=mod")
	return run(append(append([]string{"-timeout", "20s"}, flags...), "./..."))
}

// saidBy is what a gate prints, and its error.
func saidBy(t *testing.T, tests string, flags ...string) (string, error) {
	t.Helper()
	skiptest.WithShort(t, "tests of a module are built and run")
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	stdout := os.Stdout
	os.Stdout = out
	failed := gate(t, tests, flags...)
	os.Stdout = stdout
	said, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(said), failed
}

func quote(s string) string { return "`" + s + "`" }

func TestTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		tests string
		fails string // a part of the error; empty: none
	}{
		"passes what passes": {`func TestA(t *testing.T) {}`, ""},
		"fails what fails":   {`func TestA(t *testing.T) {}; func TestB(t *testing.T) { t.Error("always") }`, "failed: example.test/p"},
		"passes what is unsteady": {`func TestA(t *testing.T) {}
func TestB(t *testing.T) {
	t.Run("other (one)", func(t *testing.T) { if !firstTime("other") { t.Error("run again") } })
	t.Run("this [one]", func(t *testing.T) { if firstTime("this") { t.Error("once") } })
}`, ""},
		"fails where one of several fails again": {`
func TestA(t *testing.T) { if firstTime("a") { t.Error("once") } }
func TestB(t *testing.T) { t.Error("always") }`, "failed"},
		"fails where many failed once": {`
func TestA(t *testing.T) { if firstTime("a") { t.Error("once") } }
func TestB(t *testing.T) { if firstTime("b") { t.Error("once") } }
func TestC(t *testing.T) { if firstTime("c") { t.Error("once") } }
func TestD(t *testing.T) { if firstTime("d") { t.Error("once") } }`, "failed"},
		"fails where it crashed once":            {`func TestA(t *testing.T) { if firstTime("a") { panic("once") } }`, "failed"},
		"fails where one ended the program once": {`func TestA(t *testing.T) { if firstTime("a") { os.Exit(1) } }`, "failed"},
		"fails where what failed is skipped then": {`
func TestA(t *testing.T) { if firstTime("a") { t.Error("once") }; t.Skip("now") }`, "failed"},
		"fails where it was not built": {`func TestA(t *testing.T) { none() }`, "failed"},
		"fails where nothing ran":      {``, "no test ran"},
	} {
		t.Run(name, func(t *testing.T) {
			err := gate(t, c.tests)
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("got %v, want %q", err, c.fails)
			}
		})
	}
}

// What a test printed is shown also if the program ended before it did.
func TestTheGateSaysWhatWasCutOff(t *testing.T) {
	for name, c := range map[string]struct{ how, want string }{
		"ByAKill":    {`p, _ := os.FindProcess(os.Getpid()); _ = p.Kill(); select {}`, "said before"},
		"ByAPanic":   {`go func() { panic("in between") }(); select {}`, "panic: in between"},
		"ByItsLimit": {`select {}`, "panic: test timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			said, err := saidBy(t, `func TestA(t *testing.T) { _, _ = os.Stdout.WriteString("said before\n"); `+c.how+` }`, "-timeout", "5s")
			if err == nil {
				t.Error("a program that was cut off was passed")
			}
			if !strings.Contains(said, "said before") || !strings.Contains(said, c.want) {
				t.Errorf("the gate said:\n%s", said)
			}
		})
	}
}

func TestTheGateSaysOfEachTestWhatBecameOfIt(t *testing.T) {
	said, err := saidBy(t, `
func TestA(t *testing.T) { t.Error("always") }
func TestB(t *testing.T) {
	t.Run("once", func(t *testing.T) { if firstTime("once") { t.Error("once") } })
	t.Run("good", func(t *testing.T) {})
}
func TestC(t *testing.T) { t.Run("inner", func(t *testing.T) { t.Run("most", func(t *testing.T) {}) }) }`)
	if err == nil {
		t.Error("a test that failed twice was passed")
	}
	for _, line := range []string{
		"failed again: example.test/p.TestA\n",
		"unsteady: example.test/p.TestB/once: it failed once and passed by itself\n",
		"2 passed, 2 failed, 0 skipped, 0 of what a driver lacks\n", // no parents: TestB, TestC and TestC/inner
	} {
		if !strings.Contains(said, line) {
			t.Errorf("%q is not in:\n%s", line, said)
		}
	}
}

func TestTheGateCountsSkips(t *testing.T) {
	many := `func TestA(t *testing.T) { for range 31 { t.Run("x", func(t *testing.T) { t.Skip("a reason") }) } }`
	if err := gate(t, many); err != nil {
		t.Errorf("without CI: %v", err)
	}
	t.Setenv("CI", "true")
	if err := run([]string{"./..."}); err == nil || !strings.Contains(err.Error(), "31 tests were skipped") {
		t.Errorf("got %v", err)
	}
	lacking, err := saidBy(t, `func TestA(t *testing.T) {
	t.Run("good", func(t *testing.T) {})
	for range 31 { t.Run("x", func(t *testing.T) { t.Attr("lacks", "volumes"); t.Skip("a reason") }) }
}`)
	t.Setenv("CI", "true")
	if err != nil {
		t.Errorf("what a driver lacks counts as skipped: %v", err)
	}
	if want := "1 passed, 0 failed, 0 skipped, 31 of what a driver lacks\n"; !strings.Contains(lacking, want) {
		t.Errorf("%q is not in:\n%s", want, lacking)
	}
	if err := run([]string{"./..."}); err != nil {
		t.Errorf("where CI is set: %v", err)
	}
}
