// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sandpit.dev/internal/packagestest"
)

// fence is a block of code below a heading.
var fence = regexp.MustCompile("(?ms)^#+ ([^\n]+)\n(.*?)^```(?:python|typescript)\n(.*?)^```")

// readme returns the first block of code below each of the headings of an SDK's readme, as it is but for the key.
func readme(t *testing.T, file, key string, headings ...string) (blocks []string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, m := range fence.FindAllStringSubmatch(string(b), -1) {
		if _, under, ok := strings.Cut("\n"+m[2], "\n#"); ok { // the block is below a later heading
			name, _, _ := strings.Cut(strings.TrimLeft(under[strings.LastIndex(under, "\n#")+1:], "# "), "\n")
			m[1] = name
		}
		if found[m[1]] == "" {
			found[m[1]] = m[3]
		}
	}
	for _, h := range headings {
		if found[h] == "" {
			t.Fatalf("%s has no code below %q", file, h)
		}
		blocks = append(blocks, strings.ReplaceAll(found[h], "YOUR_API_KEY", key))
	}
	return blocks
}

// prints runs a program and fails if it does not print what it shall.
func prints(t *testing.T, env []string, want string, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.WaitDelay = env, startBound
	out, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile(want).Match(out) {
		t.Errorf("%v, and not %q:\n%s", err, want, out)
	}
}

// valueOf is the value of a variable.
func valueOf(env []string, name string) string {
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

func TestTheExamplesOfPythonRunAsTheyAreWritten(t *testing.T) {
	python := packagestest.NeedPip(t, "daytona-pip", ".")
	env := serve(t)
	prints(t, env, `(?m)^0 Python 3\.`, python, "testdata/seed.py")

	all, err := filepath.Glob(filepath.Join(filepath.Dir(python), "../lib/python3.11/site-packages/daytona-*.dist-info/METADATA"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	blocks := readme(t, all[0], valueOf(env, "DAYTONA_API_KEY"), "Create a sandbox", "Create an ephemeral sandbox", "Execute Commands", "File Operations")
	script := filepath.Join(t.TempDir(), "readme.py")
	text := strings.Join(blocks, "\n") + "\nassert content == b'Hello, World!'\nprint('found', [m.content for m in matches])\n"
	if err := os.WriteFile(script, []byte("root_dir = 'path'\n"+strings.ReplaceAll(text, "'search_pattern'", "'World'")), 0o600); err != nil {
		t.Fatal(err)
	}
	prints(t, env, `(?s)Hello, World!.*Sum: 30.*found \['Hello, World!'\]`, python, script)
}

func TestTheExamplesOfTypeScriptRunAsTheyAreWritten(t *testing.T) {
	p := packagestest.NeedNPM(t, "daytona-npm", ".")
	env, dir := serve(t), t.TempDir()
	if err := os.Symlink(filepath.Join(p.Dir, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	blocks := readme(t, filepath.Join(p.Dir, "node_modules/@daytona/sdk/README.md"), valueOf(env, "DAYTONA_API_KEY"), "Create a sandbox", "File operations")
	script := filepath.Join(dir, "readme.mjs")
	text := "const root_dir = 'path'\n" + strings.Join(blocks, "\n") + "\nconsole.log(content.toString(), 'found', matches.map((m) => m.content))\n"
	if err := os.WriteFile(script, []byte(strings.ReplaceAll(text, "'search_pattern'", "'World'")), 0o600); err != nil {
		t.Fatal(err)
	}
	prints(t, env, `(?s)Hello World!.*Hello, World! found \[ 'Hello, World!' \]`, p.Node, script)
}
