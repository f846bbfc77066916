// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerdtest_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"sandpit.dev/internal/dockerd/dockerdtest"
)

// An Engine that is started again has its earlier data, and nothing of one that ended goes on.
func TestAnEngineEndsWithAllThatItStarted(t *testing.T) {
	h := dockerdtest.New(t)
	for range 2 {
		c, err := net.Dial("unix", h.Socket())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		pid := h.Engine().PID
		ns, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns/pid"))
		if err != nil {
			t.Fatal(err)
		}
		h.Stop()
		all, err := filepath.Glob("/proc/[0-9]*/ns/pid")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range all {
			if in, err := os.Readlink(path); err == nil && in == ns {
				t.Errorf("%s goes on in the Engine's namespace", path)
			}
		}
		if _, err := os.Stat(filepath.Join(h.Dir, "data", "image")); errors.Is(err, fs.ErrNotExist) {
			t.Error("the Engine kept no data")
		}
		h.Start()
	}
}
