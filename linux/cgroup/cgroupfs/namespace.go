// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroupfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Top is the group that all namespaces are in.
const Top = "sandpit"

// OpenNamespace makes sandpit/NAMESPACE in the hierarchy at path, opens it and holds its shared lock,
// until dir is closed. clean is called with it before, if no other driver has it open. Another
// server may remove both groups between our steps, so it is tried again. The caller closes root,
// which is the hierarchy, and dir.
func OpenNamespace(k Kernel, path, namespace, owner string, clean func(dir int)) (root, dir int, err error) {
	root, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	for range 10 {
		if err = ensure(k, root, Top); err != nil {
			break
		}
		if err = ensure(k, root, Top+"/"+namespace); errors.Is(err, unix.ENOENT) {
			continue
		} else if err != nil {
			break
		}
		dir, err = Openat(root, Top+"/"+namespace, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			continue
		}
		if Alone(dir) {
			clean(dir)
		}
		if err = share(root, Top+"/"+namespace, dir); err == nil {
			mark(dir, owner)
			return root, dir, nil
		}
		unix.Close(dir)
	}
	unix.Close(root)
	return -1, -1, err
}

func ensure(k Kernel, dir int, path string) error {
	if err := k.Mkdir(dir, path); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// CloseNamespace closes dir. If no other driver has the namespace open it calls clean before, and
// removes the groups of the namespace and above it that are empty.
func CloseNamespace(k Kernel, path, namespace string, dir int, clean func() error) error {
	defer unix.Close(dir)
	if !Alone(dir) {
		return nil
	}
	cleaned := unlessKept(clean())
	root, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Join(cleaned, err)
	}
	defer unix.Close(root)
	return errors.Join(cleaned, RemoveNamespace(k, root, namespace))
}

// RemoveNamespace removes the groups of a namespace and above it that are empty.
func RemoveNamespace(k Kernel, root int, namespace string) error {
	return errors.Join(
		unlessKept(k.Rmdir(root, Top+"/"+namespace)),
		unlessKept(k.Rmdir(root, Top)))
}

// unlessKept drops the errors that say that a directory is in use or gone.
func unlessKept(err error) error {
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
