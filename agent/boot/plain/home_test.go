// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"sandpit.dev/agent/boot/plain"
	"sandpit.dev/internal/skiptest"
)

// A home is made and given to the user where nothing is. What is there stays whose it is, and what a link leads to.
func TestTheHomeIsMadeAndNothingElseIsGiven(t *testing.T) {
	skiptest.WithoutRoot(t, "it gives directories to others")
	const user = 1000
	for name, test := range map[string]struct {
		there func(home, elsewhere string) error
		owner uint32 // of what has the home's name; a link is root's
	}{
		"Missing":        {func(string, string) error { return nil }, user},
		"OfRoot":         {func(home, _ string) error { return os.Mkdir(home, 0o700) }, 0},
		"OfAnother":      {func(home, _ string) error { return errors.Join(os.Mkdir(home, 0o700), os.Chown(home, 7, 7)) }, 7},
		"AFile":          {func(home, _ string) error { return os.WriteFile(home, nil, 0o600) }, 0},
		"ALink":          {func(home, elsewhere string) error { return os.Symlink(elsewhere, home) }, 0},
		"ALinkToNowhere": {func(home, elsewhere string) error { return os.Symlink(elsewhere+"/none", home) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			home, elsewhere := filepath.Join(dir, "sandbox"), filepath.Join(dir, "elsewhere")
			if err := errors.Join(os.Mkdir(elsewhere, 0o700), test.there(home, elsewhere)); err != nil {
				t.Fatal(err)
			}
			if err := plain.MakeHome(&plain.Config{UID: user, GID: user, Home: home}); err != nil {
				t.Fatal(err)
			}
			owner := func(path string) uint32 {
				info, err := os.Lstat(path)
				if err != nil {
					t.Fatal(err)
				}
				return info.Sys().(*syscall.Stat_t).Uid
			}
			if got := owner(home); got != test.owner {
				t.Errorf("it is user %d's, want %d", got, test.owner)
			}
			if got := owner(elsewhere); got != 0 {
				t.Errorf("a directory elsewhere is user %d's", got)
			}
			if list, err := os.ReadDir(elsewhere); err != nil || len(list) > 0 {
				t.Errorf("elsewhere are %v, %v", list, err)
			}
		})
	}
	// Without the directory above there is none, and that is said.
	if err := plain.MakeHome(&plain.Config{UID: user, GID: user, Home: filepath.Join(t.TempDir(), "none", "sandbox")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("below a directory that is missing: %v", err)
	}
}
