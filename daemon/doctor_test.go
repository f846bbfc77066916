// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorWarnsOfProcessesThatMayBeDumped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "suid_dumpable")
	for is, want := range map[string]CheckStatus{"0\n": Passed, "1\n": Warned, "2\n": Warned, "": Warned, "x\n": Warned} {
		if err := os.WriteFile(path, []byte(is), 0o600); err != nil {
			t.Fatal(err)
		}
		got := checkDumps(path)
		if got.Status != want || (got.Status == Passed) != (got.Remedy == "") || !strings.Contains(got.Detail, "fs.suid_dumpable") {
			t.Errorf("where it is %q: got %+v, want %s", is, got, want)
		}
	}
	got := checkDumps(filepath.Join(t.TempDir(), "missing"))
	if got.Status != Warned || got.Remedy == "" {
		t.Errorf("where it cannot be read: got %+v, want a warning with a remedy", got)
	}
	// The real one is among the checks.
	found := false
	for _, c := range Doctor(t.Context(), DefaultConfig(), false) {
		found = found || c.Name == "core dumps"
	}
	if !found {
		t.Error("doctor does not look at it")
	}
}
