// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package running tells clients on this machine where a server is: its address
// and its data directory, in a small file that the server writes when it is
// ready and removes when it ends.
package running

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sandpit.dev/internal/atomicfile"
)

// Server is what is told of a running server.
type Server struct {
	URL  string `json:"url"`  // "http://127.0.0.1:8080"
	Data string `json:"data"` // absolute path of its data directory
	PID  int    `json:"pid"`
}

const fileName = "server.json"

// Dir is where the file is by default: one place for root, one for each user.
func Dir(uid int, runtimeDir string) string {
	switch {
	case uid == 0:
		return "/run/sandpit"
	case runtimeDir != "":
		return filepath.Join(runtimeDir, "sandpit")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("sandpit-%d", uid))
}

// Write tells of s. The newest server of a directory is the one that is found.
func Write(dir string, s Server) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, fileName), b, 0o644)
}

// Read finds the server that was told of last; fs.ErrNotExist where none was.
func Read(dir string) (Server, error) {
	b, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		return Server{}, err
	}
	var s Server
	if err := json.Unmarshal(b, &s); err != nil {
		return Server{}, fmt.Errorf("%s: %w", filepath.Join(dir, fileName), err)
	}
	return s, nil
}

// Remove takes back what the server with this pid told, and nobody else's word.
func Remove(dir string, pid int) error {
	s, err := Read(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && s.PID != pid {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, fileName))
}
