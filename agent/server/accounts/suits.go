// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Suits reports whether nothing in a root speaks against an account of uid and gid: [Own] makes its directories and
// [Plan] its name on a new disk over that root. It changes nothing. False is no refusal: those two say why, or that
// it can be done after all.
func Suits(root int, uid, gid int, name, home, workdir string) bool {
	for _, p := range []string{home, workdir} {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" || !reachable(root, strings.Trim(p, "/"), uid, gid) {
			return false
		}
	}
	_, err := Plan(root, uint32(uid), name, home)
	return err == nil
}

// reachable reports whether a directory is the user's, or missing, and each one above it can be entered by the user.
func reachable(root int, dir string, uid, gid int) bool {
	at, err := directory(root, ".")
	for rest := dir; err == nil; {
		var st unix.Stat_t
		if err = unix.Fstat(at, &st); err != nil {
			break
		}
		if rest == "" {
			_ = unix.Close(at)
			return int(st.Uid) == uid && mayEnter(&st, uid, gid)
		}
		if !mayEnter(&st, uid, gid) {
			break
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		var next int
		if next, err = directory(at, name); err == nil {
			_ = unix.Close(at)
			at = next
		}
	}
	if at >= 0 {
		_ = unix.Close(at)
	}
	return err == unix.ENOENT
}

// mayEnter goes by the mode alone: the root is an image's, of which no list of access is looked at.
func mayEnter(st *unix.Stat_t, uid, gid int) bool {
	switch {
	case int(st.Uid) == uid:
		return st.Mode&unix.S_IXUSR != 0
	case int(st.Gid) == gid:
		return st.Mode&unix.S_IXGRP != 0
	default:
		return st.Mode&unix.S_IXOTH != 0
	}
}
