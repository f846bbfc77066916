// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sandpit.dev/internal/packagestest"
)

// soakVariable asks for the long form of tests, see `make soak`.
const soakVariable = "SANDPIT_SOAK"

// The lines of older clients, the oldest first: it asks for most that newer ones do not.
var lines = []string{"0.108", "0.148", "0.180"}

// eachLine runs a test for the oldest line, and for the others too where SANDPIT_SOAK is set.
func eachLine(t *testing.T, test func(t *testing.T, line string)) {
	for i, line := range lines {
		t.Run(line, func(t *testing.T) {
			if i > 0 && os.Getenv(soakVariable) == "" {
				t.Skipf("%s is not set: `make soak` runs lines but the oldest", soakVariable)
			}
			test(t, line)
		})
	}
}

func TestSoakOlderPython(t *testing.T) {
	eachLine(t, func(t *testing.T, line string) {
		ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
		defer cancel()
		passes(t, exec.CommandContext(ctx, packagestest.NeedPip(t, "daytona-pip-"+line, filepath.Join("older", line)), "testdata/older.py"), serve(t))
	})
}

func TestSoakOlderTypeScript(t *testing.T) {
	script, err := filepath.Abs("testdata/older.mjs")
	if err != nil {
		t.Fatal(err)
	}
	eachLine(t, func(t *testing.T, line string) {
		p := packagestest.NeedNPM(t, "daytona-npm-older", "older")
		ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
		defer cancel()
		passes(t, p.Command(ctx, script), append(serve(t), "SDK="+filepath.Join(p.Dir, "node_modules/sdk-"+line)))
	})
}
