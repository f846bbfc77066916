// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"syscall"

	"sandpit.dev/fault"
)

// Language is what cells are written in.
type Language string

// The languages.
const (
	Python     Language = "python"
	JavaScript Language = "javascript"
	TypeScript Language = "typescript"
	Bash       Language = "bash"
)

// Languages lists them.
func Languages() []Language { return []Language{Python, JavaScript, TypeScript, Bash} }

// ParseLanguage reads a language as callers name it, short forms included. An
// unknown one is fault.Invalid with the field "language".
func ParseLanguage(s string) (Language, error) {
	switch l := strings.ToLower(s); l {
	case "py", "python3":
		return Python, nil
	case "js", "node":
		return JavaScript, nil
	case "ts":
		return TypeScript, nil
	case "sh", "shell":
		return Bash, nil
	default:
		if slices.Contains(Languages(), Language(l)) {
			return Language(l), nil
		}
	}
	return "", fault.InvalidField("language", "%.40q is not one of python, javascript, typescript, bash", s)
}

// The texts of the kernels.
var (
	//go:embed program/kernel.py
	pythonKernel string
	//go:embed program/charts.py
	pythonCharts string
	//go:embed program/kernel.js
	nodeText string
	//go:embed program/kernel.bash
	bashKernel string
)

// bashQuiet comes before the kernel's text: what bash is told after that is in no history, and its prompts, of which
// there is one for each line, are nobody's.
const bashQuiet = "set +H +o history; exec 198>&1 199>&2 >/dev/null 2>&1\n"

// StopSignal makes a bash end its cell, see [Session.Stop], which goes on to nothing more, as soon as the program that
// it waits for has ended: SIGRTMAX-2, whose trap bash runs then. The caller ends that program.
const StopSignal syscall.Signal = 62

// bashText is the kernel's text without what only people read.
var bashText = sync.OnceValue(func() string {
	var b strings.Builder
	for line := range strings.Lines(bashKernel) {
		if line = strings.TrimLeft(line, "\t"); line != "\n" && line[0] != '#' {
			b.WriteString(line)
		}
	}
	return b.String()
})

// pythonText is the kernel's text with that of charts in it, which it runs when it meets one.
var pythonText = sync.OnceValue(func() string {
	charts, _ := json.Marshal(pythonCharts) // a text always has JSON, which is a text of Python's, too
	return strings.Replace(pythonKernel, `CHARTS = ""`, "CHARTS = "+string(charts), 1)
})

// pythonLoader reads the kernel's text off descriptor 0 and not a byte more.
const pythonLoader = `import os
def read(n):
    b = b""
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: raise SystemExit(1)
        b += c
    return b
head = b""
while not head.endswith(b"\n"): head += read(1)
size, token = head.decode().split()
exec(compile(read(int(size)), "<kernel>", "exec"), {"__name__": "sandpit_kernel", "TOKEN": token})`

// nodeLoader is the same for Node, where only this text may import modules by
// their names.
const nodeLoader = `(() => {
const fs = require("fs");
const read = n => { const b = Buffer.alloc(n); for (let i = 0; i < n;) { const m = fs.readSync(3, b, i, n - i); if (!m) process.exit(1); i += m; } return b; };
let head = ""; while (!head.endsWith("\n")) head += read(1);
const [size, token, language] = head.trim().split(" ");
const text = read(Number(size)).toString();
require("vm").runInThisContext(text, {filename: "sandpit-kernel.js"})(token, language, (name, options) => import(name, options), require);
})()`

// nodeShell gives Node its streams under numbers that cells do not use. Node has no
// call for it.
const nodeShell = `exec node -e "$1" 3<&0 4>&1 5>&2 </dev/null`

// Command is the command of a kernel. It is to run with a streamed stdin, in the directory and
// with the environment that cells are to have. An unknown language has none.
func Command(l Language) []string {
	switch l {
	case Python:
		return []string{"python3", "-c", pythonLoader}
	case JavaScript, TypeScript:
		return []string{"/bin/sh", "-c", nodeShell, "sh", nodeLoader}
	case Bash:
		return []string{"bash", "--norc", "--noprofile", "--noediting", "-i"}
	}
	return nil
}

// IsCommand reports whether argv is the command of a kernel.
func IsCommand(argv []string) bool {
	return slices.ContainsFunc(Languages(), func(l Language) bool { return slices.Equal(Command(l), argv) })
}

// missing is the error for a kernel that ended before it was ready.
func (l Language) missing(exit Exit, said string) error {
	program, remedy := "python3", "use an image with Python 3.9 or later"
	switch l {
	case JavaScript:
		program, remedy = "node", "use an image with Node 18 or later"
	case TypeScript:
		program, remedy = "node", "use an image with Node 22.13 or later"
	case Bash:
		program, remedy = "bash", "use an image with bash 4.4 or later, or run commands without a context"
	}
	if exit.Code == 127 || exit.Code == 126 {
		return fault.New(fault.Unsupported, "%s cells need the program %s, and the sandbox has none that runs", l, program).WithRemedy("%s", remedy)
	}
	return fault.New(fault.Unavailable, "the %s kernel ended before it was ready (%s): %s", l, exit, said).WithRemedy("%s", remedy)
}

// refusal is the error for a program that says that it cannot do it.
func (l Language) refusal(version string) error {
	return fault.New(fault.Unsupported, "%s cells cannot run on Node %s, which cannot take types out", l, clean(version, 40)).
		WithRemedy("use an image with Node 22.13 or later, or write JavaScript")
}
