// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package overroot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What there is in the directory of the disk.
const (
	upperDir  = "upper"  // what was changed
	workDir   = "work"   // the kernel's own
	mergedDir = "merged" // where the overlay is mounted first; empty on the disk
)

// Enter makes an overlay the root of the process, and of those that enter its mounts later. dir is a clean absolute path, of a directory on
// the disk that keeps the changes, which is mounted there; nothing leads to it afterwards. All threads that share their root have the new one. With fresh the changes that are there are removed first. After an error
// a part of the mounts may be made. Nobody else may change mounts meanwhile.
func Enter(dir string, fresh bool) error {
	others, err := mounts(dir)
	if err != nil {
		return err
	}
	merged, err := overlay(dir, fresh)
	if err != nil {
		return err
	}
	root, err := unix.Open(merged, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: merged, Err: err}
	}
	defer unix.Close(root)
	for _, path := range others {
		if err := bring(root, path); err != nil {
			return fmt.Errorf("bring the mount at %s: %w", path, err)
		}
	}
	if err := unix.Fchdir(root); err != nil {
		return os.NewSyscallError("fchdir", err)
	}
	// Filters of containers refuse pivot_root also where they allow mount.
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the overlay to the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return os.NewSyscallError("chroot", err)
	}
	return os.NewSyscallError("chdir", unix.Chdir("/"))
}

// overlay mounts it, and returns where.
func overlay(dir string, fresh bool) (merged string, err error) {
	var top unix.Stat_t
	if err := unix.Stat("/", &top); err != nil {
		return "", err
	}
	disk, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	if fresh {
		if err := errors.Join(disk.RemoveAll(upperDir), disk.RemoveAll(workDir)); err != nil {
			return "", fmt.Errorf("remove what was changed of the root: %w", err)
		}
	}
	for _, name := range []string{upperDir, workDir, mergedDir} {
		err := disk.Mkdir(name, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil && name == upperDir { // it is what the root's own attributes are
			err = disk.Chmod(name, os.FileMode(top.Mode&0o777))
		}
		if err != nil {
			return "", err
		}
	}
	merged = filepath.Join(dir, mergedDir)
	// userxattr: what an overlay notes of a file it notes in attributes that root of a user namespace may set.
	options := "lowerdir=/,upperdir=" + filepath.Join(dir, upperDir) + ",workdir=" + filepath.Join(dir, workDir) + ",userxattr"
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		return "", fmt.Errorf("mount an overlay over the image on %s: %w", dir, err)
	}
	return merged, nil
}

// bring has what is mounted at a path also be mounted there below the new root.
func bring(root int, path string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return os.NewSyscallError("open_tree", err)
	}
	defer unix.Close(tree)
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	at, err := place(root, path, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return os.NewSyscallError("move_mount", unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
}
