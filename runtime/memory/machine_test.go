// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestADirectoryIsRemovedWhileTheLastFilesAreMadeInIt(t *testing.T) {
	for range 20 {
		dir := filepath.Join(t.TempDir(), "machine", "disk")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		var made sync.WaitGroup
		for who := range 2 {
			made.Go(func() {
				for i := range 100 { // who is killed makes few more
					if os.Mkdir(filepath.Join(dir, fmt.Sprint(who, i)), 0o755) != nil {
						return // it is gone
					}
				}
			})
		}
		err := removeAll(filepath.Dir(dir))
		made.Wait()
		if err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it is still there: %v", err)
		}
	}
}
