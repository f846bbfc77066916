// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// helloKey names the sandbox of the first program.
const helloKey = "hello"

// helloProgram shows where it runs, and that what it leaves behind stays.
const helloProgram = `
import os, pathlib, platform

runs = pathlib.Path("/workspace/runs")
count = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(count))
print(f"Hello from Python {platform.python_version()} in the sandbox {platform.node()}.")
print(f"I am uid {os.getuid()} and process {os.getpid()}; there is no network; run {count} of this program.")
print("2 ** 127 - 1 =", 2 ** 127 - 1)
`

// firstProgram runs a program in a sandbox and prints what it says.
func (a *app) firstProgram(ctx context.Context, cl *client.Client) error {
	s, _, err := a.create(ctx, cl, v1.CreateSandbox{Key: new(helloKey)})
	if err != nil {
		return err
	}
	out, err := cl.Exec(ctx, s.ID, v1.Exec{Argv: []string{"python", "-c", helloProgram}})
	if err != nil {
		return err
	}
	if out.ExitCode == nil || *out.ExitCode != 0 {
		return fault.New(fault.Internal, "the first program did not work: %s", out.Stderr).
			WithRemedy("look into the sandbox: sandpit shell %s", helloKey)
	}
	_, err = fmt.Fprintf(a.stdout, "\nA first program, in a sandbox that was made for it (%d ms):\n\n%s", out.DurationMS, out.Stdout)
	return err
}
