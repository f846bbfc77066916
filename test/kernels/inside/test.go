// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sandpit.dev/test/kernels/told"
)

// test runs a compiled test binary in its directory.
func (h *host) test(ctx context.Context, t told.Test) (string, error) {
	limit := time.Duration(t.Minutes) * time.Minute
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute) // it dies of its own limit first, and says where
	defer cancel()
	cmd := exec.CommandContext(ctx, "./test", "-test.v", "-test.run="+t.Run, "-test.timeout="+limit.String())
	cmd.Dir = filepath.Join(h.dir, "tests", t.Name)
	out := &verdicts{to: os.Stdout}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	s := summary(out.all.String())
	if err != nil {
		return s.words() + "\n" + s.failures, err
	}
	if s.passed == 0 {
		return s.words(), errors.New("no test passed")
	}
	return s.words(), nil
}

// verdicts keeps what tests write, and passes their verdicts on as they come, so that the
// console tells how far they are.
type verdicts struct {
	to   io.Writer
	all  bytes.Buffer
	told int // bytes of all that were looked through
}

func (v *verdicts) Write(p []byte) (int, error) {
	v.all.Write(p)
	for {
		line, _, whole := bytes.Cut(v.all.Bytes()[v.told:], []byte("\n"))
		if !whole {
			return len(p), nil
		}
		v.told += len(line) + 1
		if bytes.HasPrefix(line, []byte("--- ")) {
			fmt.Fprintf(v.to, "%s\n", line)
		}
	}
}

// counts of what tests said.
type counts struct {
	passed, failed, skipped int
	failures                string // what failed, with what was said before
}

func (c counts) words() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// summary reads what go test -v writes. Of a test that failed it keeps what stands
// between its verdict and the one before.
func summary(out string) (c counts) {
	var said, failures strings.Builder
	for line := range strings.Lines(out) {
		verdict := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(verdict, "=== "):
			continue
		case strings.HasPrefix(verdict, "--- PASS"):
			c.passed++
		case strings.HasPrefix(verdict, "--- SKIP"):
			c.skipped++
		case strings.HasPrefix(verdict, "--- FAIL"):
			c.failed++
			failures.WriteString(said.String() + line)
		case strings.HasPrefix(verdict, "panic: "), strings.HasPrefix(verdict, "fatal error: "):
			failures.WriteString(line)
			continue
		default:
			if said.Len() < 4000 {
				said.WriteString(line)
			}
			continue
		}
		said.Reset()
	}
	c.failures = failures.String()
	return c
}
