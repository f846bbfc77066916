// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/internal/seal"
)

func TestAFileOfAKeyIsMadeForItsOwnerAloneAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.key")
	if _, err := seal.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile without a file: %v, want ErrNotExist", err)
	}
	made, err := seal.ReadOrMakeFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v (%v), want 0600", info.Mode(), err)
	}
	again, err := seal.ReadOrMakeFile(path)
	if err != nil || again.KeyID() != made.KeyID() {
		t.Errorf("a second time: %v, want the same key", err)
	}
	if other, err := seal.ReadOrMakeFile(filepath.Join(t.TempDir(), "secrets.key")); err != nil || other.KeyID() == made.KeyID() {
		t.Errorf("another file has the same key (%v)", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left beside it: %v", left)
	}
}

func TestAFileThatIsNotItsOwnersAloneIsRefused(t *testing.T) {
	for mode, ok := range map[fs.FileMode]bool{
		0o600: true, 0o400: true, 0o440: true, 0o640: true,
		0o644: false, 0o604: false, 0o620: false, 0o660: false, 0o602: false, 0o666: false, 0o777: false,
	} {
		path := filepath.Join(t.TempDir(), "k")
		if err := os.WriteFile(path, []byte(seal.Generate()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for name, read := range map[string]func(string) (*seal.Ring, error){"ReadFile": seal.ReadFile, "ReadOrMakeFile": seal.ReadOrMakeFile} {
			_, err := read(path)
			if (err == nil) != ok {
				t.Errorf("%s with mode %04o: %v", name, mode, err)
			}
			if err != nil && !strings.Contains(err.Error(), "chmod") {
				t.Errorf("%s with mode %04o: the error %q does not say what to do", name, mode, err)
			}
		}
	}
}

func TestABadFileIsRefusedAndLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "cut": hex.EncodeToString(key(1))[:40], "huge": strings.Repeat("#\n", 64<<10),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := seal.ReadOrMakeFile(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error that names the file", name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%s: the file was changed", name)
		}
	}
	if _, err := seal.ReadOrMakeFile(filepath.Join(dir, "folder")); err == nil {
		t.Error("a folder was taken for a file of keys")
	}
	if _, err := seal.ReadOrMakeFile(filepath.Join(dir, "none", "k")); err == nil {
		t.Error("a file was made in a folder that is not there")
	}
}
