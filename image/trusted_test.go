// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os"
	"path/filepath"
	"testing"
)

func TestABuildTrustsTheHostsAuthoritiesAndTheOperators(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host.pem")
	if err := os.WriteFile(host, []byte("host's\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &work{dir: t.TempDir(), authorities: []byte("operator's\n")}
	if got := aptTrusts([]string{`Acquire::https::CAInfo "/no.pem"`, "Acquire::Retries \"3\"", `acquire::https::cainfo "` + host + `"`}); got != host {
		t.Errorf("apt's file is %q", got)
	}
	path, err := w.trustFile("apt.pem", host)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "host's\noperator's\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := w.trusted(""); err != nil || string(got) != "operator's\n" {
		t.Errorf("on a host without any: %q, %v", got, err)
	}
	if _, err := w.trusted(filepath.Join(w.dir, "missing")); err == nil {
		t.Error("a file that is missing is none")
	}
}
