// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package ownskill has the skill that teaches an agent with a terminal to work with sandboxes through the
// CLI, and writes it to a directory.
package ownskill

import (
	"bytes"
	"embed"
	"io/fs"
	"os"
	"path/filepath"

	"sandpit.dev/fault"
)

// Name is that of the skill, and of its directory.
const Name = "sandpit"

//go:embed sandpit
var files embed.FS

// Write writes the skill to the directory of its name in dir, which is made where it is missing, and returns
// its path. What is there already is refused. A part that was written is removed after an error.
func Write(dir string) (path string, err error) {
	path = filepath.Join(dir, Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fault.Wrap(fault.Denied, err, "%s cannot be made", dir)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		if os.IsExist(err) {
			return "", fault.Wrap(fault.Exists, err, "%s is there already", path).WithRemedy("remove it, or name another directory")
		}
		return "", fault.Wrap(fault.Denied, err, "%s cannot be made", path)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(path)
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fault.Wrap(fault.Denied, err, "%s cannot be opened", dir)
	}
	defer root.Close()
	err = fs.WalkDir(files, Name, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == Name {
			return err
		}
		if d.IsDir() {
			return root.Mkdir(name, 0o755)
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o755
		}
		return root.WriteFile(name, data, mode)
	})
	if err != nil {
		return "", fault.Wrap(fault.Denied, err, "%s cannot be written", path)
	}
	return path, nil
}
