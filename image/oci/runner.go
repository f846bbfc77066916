// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxUserNumber is the highest number of an account that sandboxes have.
const maxUserNumber = 65535

// runner makes the account that an image's USER names the one of commands: it gets their number, and so does what
// belongs to it. root, no account and one that the image does not have change nothing.
func (c completion) runner(ctx context.Context, user string, left *budget) error {
	user, _, _ = strings.Cut(user, ":")
	if user == "" {
		return nil
	}
	at, data, info, err := c.read("etc/passwd")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := strings.SplitAfter(string(data), "\n")
	found := -1
	uid, gid := number(user), 0
	for i, line := range lines {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) != 7 || f[0] != user && f[2] != user {
			continue
		}
		found, uid, gid = i, number(f[2]), number(f[3])
		break
	}
	if uid <= 0 || uid == userID || !c.own {
		return nil
	}
	if found >= 0 {
		f := strings.Split(strings.TrimSuffix(lines[found], "\n"), ":")
		f[2], f[3] = strconv.Itoa(userID), strconv.Itoa(userID)
		lines[found] = ""
		// Before another account of that number, which stays: what asks for its name finds the first.
		text := strings.Join(f, ":") + "\n" + strings.Join(lines, "")
		if err := c.replace(at, []byte(text), info.Mode().Perm(), owner(info), group(info)); err != nil {
			return err
		}
		if gid > 0 && gid != userID {
			if err := c.renumberGroup(gid); err != nil {
				return err
			}
		}
	}
	if gid <= 0 || gid == userID {
		gid = -1
	}
	return c.give(ctx, ".", uid, gid, left)
}

// number is the number of an account, or -1: it is none that a sandbox has.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxUserNumber {
		return -1
	}
	return n
}

// renumberGroup gives the group of a number that of the account of commands.
func (c completion) renumberGroup(gid int) error {
	at, data, info, err := c.read("etc/group")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(data), "\n")
	for i, line := range lines {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) != 4 || f[2] != strconv.Itoa(gid) {
			continue
		}
		f[2], lines[i] = strconv.Itoa(userID), ""
		text := strings.Join(f, ":") + "\n" + strings.Join(lines, "")
		return c.replace(at, []byte(text), info.Mode().Perm(), owner(info), group(info))
	}
	return nil
}

// give gives what belongs to a user or a group below a directory to the account of commands. A file of a layer becomes
// one of the image's own.
func (c completion) give(ctx context.Context, name string, uid, gid int, left *budget) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	dir, err := openDir(c.root, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1) // all of them first: copies are made in it
	if err != nil {
		return err
	}
	for _, base := range names {
		at := path.Join(name, base)
		info, err := c.root.Lstat(at)
		if err != nil {
			return err
		}
		if err := c.giveEntry(dir, base, at, info, uid, gid, left); err != nil {
			return fmt.Errorf("give %s to the account of commands: %w", shown(at), err)
		}
		if info.IsDir() {
			if err := c.give(ctx, at, uid, gid, left); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c completion) giveEntry(dir *os.File, base, at string, info fs.FileInfo, uid, gid int, left *budget) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fs.ErrInvalid
	}
	newUID, newGID := int(st.Uid), int(st.Gid)
	if newUID == uid {
		newUID = userID
	}
	if newGID == gid {
		newGID = userID
	}
	special := !info.IsDir() && !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink
	if newUID == int(st.Uid) && newGID == int(st.Gid) || special {
		return nil
	}
	if !info.IsDir() && st.Nlink > 1 {
		if err := left.take(st.Size); err != nil {
			return err
		}
		if err := ownCopy(dir, base); err != nil {
			return err
		}
	}
	if err := c.root.Lchown(at, newUID, newGID); err != nil {
		return err
	}
	if info.Mode().IsRegular() || info.IsDir() {
		// The kernel takes the set-user-id bits and the capabilities of a file away that changes its owner. What was the
		// account's own gains nothing by them.
		return c.root.Chmod(at, info.Mode()&(fs.ModePerm|fs.ModeSticky|fs.ModeSetgid))
	}
	return nil
}

// ownCopy puts in place of a file of a layer one of the image's own.
func ownCopy(dir *os.File, base string) error {
	const aside = ".sandpit-own"
	if err := unix.Unlinkat(int(dir.Fd()), aside, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	// Under another name in the same directory, from which the copy takes its name back.
	if err := unix.Renameat(int(dir.Fd()), base, int(dir.Fd()), aside); err != nil {
		return err
	}
	if err := copyFile(dir, aside, dir, base, true); err != nil {
		return err
	}
	return unix.Unlinkat(int(dir.Fd()), aside, 0)
}
