// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// spent runs a command that is measured, and gives what it took. It is not ended with
// ctx: a sandbox that is half made is harder to clean up than one that ends by itself.
func spent(ctx context.Context, dir string, command func(ctx context.Context) *exec.Cmd) (took, cpu time.Duration, err error) {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	cmd := command(limit)
	// Words go to a file: what a runtime leaves running keeps them open, and a pipe
	// would be read for as long.
	said, err := os.CreateTemp(dir, "said-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, said.Close(), os.Remove(said.Name())) }()
	cmd.Stdout, cmd.Stderr = said, said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		words := make([]byte, 2048)
		n, _ := said.ReadAt(words, 0) // it is a remark on another error
		return 0, 0, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(words[:n]))
	}
	took = time.Since(began)
	return took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
