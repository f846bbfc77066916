// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/daemon"
	"sandpit.dev/fault"
)

// benchName is the program that measures.
const benchName = "sandpit-bench"

// NewBench returns the command that measures this machine.
func NewBench(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure sandpit on this machine, beside what you would pick instead",
		Long: `Measure sandpit on this machine, beside what you would pick instead.

That is a program of its own, sandpit-bench, which has to be beside this one; in a checkout it is built.
"sandpit bench --help" is its help then.`,
		DisableFlagParsing: true, // they are the program's
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		own, err := os.Executable()
		if err != nil {
			return err
		}
		program, err := benchProgram(a, own)
		if err != nil {
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return c.Help()
			}
			return err
		}
		cfg := daemon.DefaultConfig()
		if err := cfg.ReadEnv(a.Getenv); err != nil {
			return err
		}
		if err := cfg.Check(); err != nil {
			return err
		}
		err = syscall.Exec(program, append([]string{benchName}, args...), append(os.Environ(), "SANDPIT_IMAGES="+cfg.Images.Dir, "SANDPIT_BENCH_PROGRAM="+own))
		return fault.Wrap(fault.Unavailable, err, "%s cannot be executed", program)
	}
	return c
}

// benchProgram returns the program beside the own one. In a checkout it is built anew, which takes
// a moment where nothing changed.
func benchProgram(a *app.App, own string) (string, error) {
	dir := filepath.Dir(own)
	program := filepath.Join(dir, benchName)
	source := filepath.Join(filepath.Dir(dir), "bench")
	if _, err := os.Stat(filepath.Join(source, "go.mod")); err == nil && filepath.Base(dir) == "bin" {
		build := exec.Command("go", "build", "-trimpath", "-o", program, "./cmd/"+benchName)
		build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
		build.Stdout, build.Stderr = a.Stderr, a.Stderr
		if err := build.Run(); err != nil && !errors.Is(err, exec.ErrNotFound) {
			return "", fault.Wrap(fault.Unavailable, err, "%s cannot be built in %s", benchName, source).
				WithRemedy("see what go said above")
		}
	}
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.Unavailable, "the program %s, which measures, is not in %s", benchName, dir).
			WithRemedy("build it in a checkout of sandpit (make bin/sandpit-bench), and put it beside sandpit")
	} else if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "%s cannot be looked at", program)
	}
	return program, nil
}
