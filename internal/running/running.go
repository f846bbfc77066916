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
	"syscall"

	"sandpit.dev/internal/atomicfile"
)

// Server is what is told of a running server.
type Server struct {
	URL  string `json:"url"`  // "http://127.0.0.1:8080"
	Data string `json:"data"` // absolute path of its data directory
	PID  int    `json:"pid"`
}

const fileName = "server.json"

// Dir is where the file is by default: one place for root, one for each user
// who has a directory of their own at runtimeDir.
func Dir(uid int, runtimeDir string) string {
	if uid == 0 || runtimeDir == "" {
		return "/run/sandpit"
	}
	return filepath.Join(runtimeDir, "sandpit")
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
//
// A directory that belongs to another user than root or us, or that others may
// write, is not read: who tells us where to send a token must be somebody that
// we trust with it.
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
