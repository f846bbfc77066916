// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/kernel"
)

func TestCellsFindTheirArguments(t *testing.T) {
	t.Parallel()
	argv := []string{"a b", "it's", "-x", "", "ü\n\"$HOME\"\\"}
	list := strings.Join(argv, "|")
	for _, c := range []struct {
		l    kernel.Language
		tell string
	}{
		{kernel.Python, "import sys; print(sys.argv[0], end=''); print(*sys.argv[1:], sep='|', end='')"},
		{kernel.JavaScript, "process.stdout.write(process.argv.slice(2).join('|')); undefined"},
		{kernel.TypeScript, "const all: string[] = process.argv.slice(2); process.stdout.write(all.join('|')); undefined"},
		{kernel.Bash, `IFS='|'; printf %s "$*"`},
	} {
		t.Run(string(c.l), func(t *testing.T) {
			t.Parallel()
			b := open(t, c.l)
			if r := b.run(c.tell); r.out != "" {
				t.Errorf("a cell without arguments has told %q", r.out)
			}
			if r := b.cell(kernel.Cell{Code: c.tell, Argv: argv}); r.out != list || r.End != kernel.OK {
				t.Errorf("it told %q, not %q: %+v", r.out, list, r.Error)
			}
			if r := b.run(c.tell); r.out != "" {
				t.Errorf("the next cell has told %q", r.out)
			}
		})
	}
}

// What a language wants at the beginning of a text stays there, and lines keep their numbers.
func TestArgumentsChangeNoLine(t *testing.T) {
	t.Parallel()
	argv := []string{"x"}
	py := open(t, kernel.Python)
	r := py.cell(kernel.Cell{Code: "from __future__ import annotations\nimport sys\ndef f(a: no_such_type): raise ValueError(sys.argv[1])\nf(1)", Argv: argv})
	if r.Error == nil || r.Error.Name != "ValueError" || r.Error.Value != "x" ||
		!slices.ContainsFunc(r.Error.Traceback, func(s string) bool { return strings.Contains(s, "line 3, in f") }) {
		t.Errorf("python: %+v", r.Error)
	}
	if r := py.cell(kernel.Cell{Code: "%%writefile argv.txt\nfirst", Argv: argv}); r.End != kernel.OK {
		t.Errorf("a magic: %+v", r.Error)
	}
	js := open(t, kernel.JavaScript)
	if r = js.cell(kernel.Cell{Code: "'use strict';\nundeclared = process.argv[2]", Argv: argv}); r.Error == nil || !strings.Contains(r.trace(), "cell-1.js:2:") {
		t.Errorf("javascript: %+v", r.Error)
	}
	ts := open(t, kernel.TypeScript)
	if r = ts.cell(kernel.Cell{Code: "import { sep } from 'path'\n\nthrow new Error(sep + process.argv[2] + process.argv[1])", Argv: argv}); r.Error == nil ||
		r.Error.Value != "/xcell-1.ts" || !strings.Contains(r.trace(), "cell-1.ts:3:") {
		t.Errorf("typescript: %+v", r.Error)
	}
}

func TestArgumentsAreBounded(t *testing.T) {
	t.Parallel()
	for name, argv := range map[string][]string{
		"a NUL":    {"a", "b\x00"},
		"no UTF-8": {"\xff"},
		"too much": {strings.Repeat("x", kernel.MaxArgv)},
	} {
		if err := kernel.CheckArgv(argv); !fault.Is(err, fault.Invalid) || fault.As(err).Fields[0].Name != "argv" {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := open(t, kernel.Bash)
	if r := b.cell(kernel.Cell{Code: "echo $#", Argv: make([]string, kernel.MaxArgv)}); r.out != "131072\n" {
		t.Errorf("as many as there may be are %.100q", r.out)
	}
	if _, err := b.Execute(t.Context(), kernel.Cell{Argv: []string{"\x00"}}, kernel.Handler{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a NUL: %v", err)
	}
}
