// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package running lets clients on this machine find a server: its address and its data directory,
// in a small file that the server writes when it is ready and removes when it ends.
package running

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sandpit.dev/internal/atomicfile"
)

// Server is the record of a running server.
type Server struct {
	URL  string `json:"url"`  // "http://127.0.0.1:8080"
	Data string `json:"data"` // absolute path of its data directory
	PID  int    `json:"pid"`
}

const fileName = "server.json"

// Dir is where the file is by default: one place for root, one for each user
// that has its own directory at runtimeDir.
func Dir(uid int, runtimeDir string) string {
	if uid == 0 || runtimeDir == "" {
		return "/run/sandpit"
	}
	return filepath.Join(runtimeDir, "sandpit")
}

// Write records s. The newest server of a directory is the one that is found.
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

// Read returns the server that was recorded last; fs.ErrNotExist if there is none.
//
// It refuses a directory that belongs to another user than root or us, or that others may write:
// the record says where a token is sent, so we must trust its author.
func Read(dir string) (Server, error) {
	st, err := os.Stat(dir)
	if err != nil {
		return Server{}, err
	}
	if err := owned(st); err != nil {
		return Server{}, fmt.Errorf("%s is not read: %w", dir, err)
	}
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

func owned(st fs.FileInfo) error {
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return errors.New("its owner is not known")
	case sys.Uid != 0 && int(sys.Uid) != os.Geteuid():
		return fmt.Errorf("it belongs to user %d", sys.Uid)
	case st.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write it (mode %v)", st.Mode().Perm())
	}
	return nil
}

// Remove removes the record of the server with this pid, and no other.
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
