// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

// siteCustomize is what Python runs at each start.
//
//go:embed sitecustomize.py
var siteCustomize string

// Debian's own file, which only looks for a program of Ubuntu's, is at
// siteCustomizeFile; a link in the standard library leads there. dpkg keeps a
// changed file of configuration when the package is upgraded.
const (
	siteCustomizeFile   = "etc/python3.11/sitecustomize.py"
	siteCustomizeModule = "usr/lib/python3.11/sitecustomize.py"
	siteCustomizeCache  = "usr/lib/python3.11/__pycache__/sitecustomize.cpython-311.pyc"
)

// maxSiteCustomize bounds the compiled file, which the new root writes.
const maxSiteCustomize = 1 << 20

// customizePython has the root's Python keep no .pyc that a later edit of its
// source could pass for its own. The file is compiled here, since a sandbox's
// user may not write beside it and would compile it at each start.
func customizePython(ctx context.Context, w *work) error {
	root, err := os.OpenRoot(w.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat(siteCustomizeModule); err != nil {
		return fmt.Errorf("the root's Python has no %s: %w", siteCustomizeModule, err)
	}
	if err := replaceFile(root, siteCustomizeFile, siteCustomize, 0o644); err != nil {
		return err
	}
	out, err := os.MkdirTemp(w.dir, "compiled-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(out)
	if err := os.Chmod(out, 0o777); err != nil {
		return err
	}
	// By contents and not by time: a copy of an image may have other times.
	_, err = w.chroot(ctx, inside{Writable: out}, "python3", "-c", `import sys, py_compile
py_compile.compile(sys.argv[1], sys.argv[2], doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)`,
		"/"+siteCustomizeModule, "/mnt/compiled")
	if err != nil {
		return err
	}
	compiled, err := readSmall(filepath.Join(out, "compiled"))
	if err != nil {
		return err
	}
	return replaceFile(root, siteCustomizeCache, compiled, 0o644)
}

// readSmall reads a regular file that a program of the new root wrote.
func readSmall(path string) (string, error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer dir.Close()
	info, err := dir.Lstat(filepath.Base(path))
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSiteCustomize {
		return "", fmt.Errorf("%s is no regular file of at most %d bytes", path, maxSiteCustomize)
	}
	data, err := dir.ReadFile(filepath.Base(path))
	return string(data), err
}
