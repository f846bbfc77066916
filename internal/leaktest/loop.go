// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"os"
	"path/filepath"
	"strings"
)

// loops counts loop devices on files below the directory.
func loops(s Scope, _ []Process, out map[string]int) error {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it was detached since
		}
		backing := strings.TrimSuffix(strings.TrimSpace(string(b)), " (deleted)")
		if s.within(backing) {
			out[strings.Split(f, "/")[3]+" "+backing]++
		}
	}
	return nil
}
