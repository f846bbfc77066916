// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package embedded carries the agent's program in the server's binary.
//
// The program is built by `make build` before the server is. Without it the
// server builds all the same, and says so when it is asked to run a sandbox.
package embedded

import (
	"embed"
	"errors"
	"io/fs"
)

//go:embed bin
var files embed.FS

// Program is the agent, a static Linux binary; nil in a build without it. It
// must not be changed.
func Program() ([]byte, error) {
	b, err := files.ReadFile("bin/sandpit-agent")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}
