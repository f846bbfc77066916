// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// cache is the directory that all is made in, with the context that all ends with.
type cache struct {
	ctx   context.Context
	dir   string
	began time.Time
}

func openCache(ctx context.Context, dir string) (*cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &cache{ctx: ctx, dir: dir, began: time.Now()}
	for _, sub := range []string{"apt", "kernels", "logs"} {
		if err := os.MkdirAll(c.path(sub), 0o755); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *cache) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

// say tells who waits how far it is.
func (c *cache) say(format string, args ...any) {
	fmt.Printf("[%4.0fs] %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// do runs a program to its end and gives what it wrote to stdout. What it started ends with it.
func (c *cache) do(name string, args ...string) (string, error) {
	return c.doIn("", nil, name, args...)
}

// doIn is do in a directory, with additions to the environment.
func (c *cache) doIn(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(errs.String())
		if n := len(said); n > 2000 {
			said = "…" + said[n-2000:]
		}
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said)
	}
	return out.String(), nil
}
