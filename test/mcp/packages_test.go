// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"os"
	"testing"

	"sandpit.dev/internal/packagestest"
)

// needPackages returns the packages of package.json, and skips a test where they cannot be had.
func needPackages(t *testing.T) packagestest.NPM {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what npm may have to fetch")
	}
	return packagestest.NeedNPM(t, "mcp", ".")
}

func TestTheLockFileNamesNoRegistry(t *testing.T) {
	b, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte(`"resolved"`)) {
		t.Error("package-lock.json says where packages are fetched from, which is for each machine to say: run npm install --package-lock-only --omit-lockfile-registry-resolved")
	}
	if !bytes.Contains(b, []byte(`"integrity"`)) {
		t.Error("package-lock.json does not say what the packages are")
	}
}
