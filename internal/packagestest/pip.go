// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package packagestest

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// pythonOf is the version of Python that lockfiles of pip are of: Debian 12's.
const pythonOf = "3.11"

// NeedPip returns a Python that has the packages of requirements.txt in a directory, each by its hash. It skips a test where
// they cannot be had. name begins the name of where they are kept.
func NeedPip(t testing.TB, name, in string) (python string) {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])").Output()
	switch version := strings.TrimSpace(string(out)); {
	case err != nil:
		t.Skipf("the packages of requirements.txt need Python with venv, which is not installed: %v", err)
	case version != pythonOf || runtime.GOARCH != "amd64":
		t.Skipf("the packages of requirements.txt are of Python %s on amd64, not %s on %s", pythonOf, version, runtime.GOARCH)
	}
	dir, err := kept(name, []string{filepath.Join(in, "requirements.txt")}, func(dir string, _ map[string][]byte) error {
		if err := run(dir, "python3", "-m", "venv", "venv"); err != nil {
			return err
		}
		return run(dir, filepath.Join(dir, "venv/bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", "requirements.txt")
	})
	return filepath.Join(need(t, "the packages of requirements.txt", dir, err), "venv/bin/python")
}
