// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command inside runs in a virtual machine of kernels, as root: it runs what the plan
// beside it says and tells on its standard output what came of it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/test/kernels/told"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "inside: the one argument is the directory of the plan")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "inside:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	if err != nil {
		return err
	}
	var plan told.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return err
	}
	if err := prepare(dir); err != nil {
		return err
	}
	tell(told.Result{Check: told.Begin, OK: true})
	ctx := context.Background()
	h := &host{dir: dir, data: "/var/lib/sandpit"}
	checks := map[string]func(context.Context) (string, error){"doctor": h.doctor, "cli": h.day, "leftovers": h.leftovers}
	for _, name := range plan.Checks {
		check(name, func() (string, error) { return checks[name](ctx) })
	}
	for _, t := range plan.Tests {
		check(t.Name, func() (string, error) { return h.test(ctx, t) })
	}
	tell(told.Result{Check: told.End, OK: true})
	return nil
}

// prepare makes the machine what a login as root finds.
func prepare(dir string) error {
	for name, value := range map[string]string{
		"HOME": "/root", "TMPDIR": "/var/tmp", "SANDPIT_TEST_IMAGES": filepath.Join(dir, "images"), "SANDPIT_TEST_AGENT": filepath.Join(dir, told.Agent),
		"PATH": dir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	// The machine has no network: an address for what must not be reached from a sandbox.
	if out, err := exec.Command("ip", "address", "add", "203.0.113.9/32", "dev", "lo").CombinedOutput(); err != nil {
		return fmt.Errorf("ip address add: %w: %s", err, out)
	}
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 65536, Max: 65536})
}

func check(name string, do func() (detail string, err error)) {
	began := time.Now()
	detail, err := do()
	if err != nil {
		detail += "\n" + err.Error()
	}
	tell(told.Result{Check: name, OK: err == nil, Seconds: time.Since(began).Seconds(), Detail: detail})
}

func tell(r told.Result) {
	// In one write, which the kernel's words cannot part.
	_, _ = os.Stdout.Write(r.Line())
}
