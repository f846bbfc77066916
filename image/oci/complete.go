// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// The account that commands in a sandbox run as.
const (
	userName = "sandbox"
	userID   = 1000
	userHome = "home/sandbox"
)

// maxAccounts bounds the files of accounts.
const maxAccounts = 4 << 20

// completion adds to an image's root what a sandbox needs. Every file of the root is also one of
// a layer, so it writes new ones and changes none.
type completion struct {
	root *os.Root
	own  bool
}

// complete makes root one that sandboxes run in, whatever the image has: it adds the account of their
// commands, which is the one that user names if that is an ordinary one, the directories that they may write, and names that are of no host.
func complete(ctx context.Context, root *os.Root, own bool, user string, left *budget) error {
	c := completion{root, own}
	if err := root.Chmod(".", 0o755); err != nil {
		return err
	}
	for _, d := range []struct {
		name string
		mode fs.FileMode
		user bool
	}{
		{"etc", 0o755, false}, {"dev", 0o755, false}, {"proc", 0o555, false}, {"sys", 0o555, false}, {"run", 0o755, false}, {"var", 0o755, false},
		{"tmp", 0o777 | fs.ModeSticky, false}, {"var/tmp", 0o777 | fs.ModeSticky, false}, {"home", 0o755, false},
		{"workspace", 0o755, true}, {"artifacts", 0o755, true}, {userHome, 0o755, true},
	} {
		if err := c.directory(d.name, d.mode, d.user); err != nil {
			return err
		}
	}
	if err := c.runner(ctx, user, left); err != nil {
		return err
	}
	if err := c.accounts(); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"etc/hostname": "sandbox\n", "etc/machine-id": "", "etc/resolv.conf": "",
		"etc/hosts": "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n",
	} {
		if err := c.replace(name, []byte(content), 0o644, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// directory makes name a directory, also where the image has a link or a file: mounts follow no
// link. What tmp is a link to stays where it is.
func (c completion) directory(name string, mode fs.FileMode, user bool) error {
	info, err := c.root.Lstat(name)
	if err == nil && !info.IsDir() {
		if name == "etc" || name == "var" {
			return refused("its /%s is not a directory", name)
		}
		if err := c.root.Remove(name); err != nil {
			return err
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fresh := err != nil || !info.IsDir()
	if fresh {
		if err := c.root.Mkdir(name, 0o755); err != nil {
			return err
		}
	}
	if fresh || mode&fs.ModeSticky != 0 {
		if err := c.root.Chmod(name, mode); err != nil {
			return err
		}
	}
	if user && c.own {
		return c.root.Lchown(name, userID, userID)
	}
	return nil
}

// accounts adds the user and its group. An account of the image with the same number is it already.
func (c completion) accounts() error {
	shell := "/bin/sh"
	if c.has("bin/bash") {
		shell = "/bin/bash"
	}
	name := userName
	for _, f := range []struct {
		file, missing, line string
		number              int // field with the number; 0: only the name counts
		must                bool
	}{
		{"etc/passwd", "root:x:0:0:root:/root:" + shell + "\n", "%s:x:1000:1000::/" + userHome + ":" + shell, 2, true},
		{"etc/group", "root:x:0:\n", "%s:x:1000:", 2, true},
		{"etc/shadow", "", "%s:*:19000:0:99999:7:::", 0, false},
		{"etc/gshadow", "", "%s:*::", 0, false},
	} {
		at, data, info, err := c.read(f.file)
		if errors.Is(err, fs.ErrNotExist) {
			if !f.must {
				continue
			}
			at, data, err = f.file, []byte(f.missing), nil
		}
		if err != nil {
			return err
		}
		text := string(data)
		if f.number != 0 && hasField(text, f.number, fmt.Sprint(userID)) {
			if f.file == "etc/passwd" {
				return c.group() // the image's own account, with what belongs to it
			}
			continue
		}
		if hasField(text, 0, name) {
			if f.number == 0 {
				continue
			}
			name += fmt.Sprint(userID) // the image's is another one
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		mode, uid, gid := fs.FileMode(0o644), 0, 0
		if info != nil {
			mode, uid, gid = info.Mode().Perm(), owner(info), group(info)
		}
		if err := c.replace(at, []byte(text+fmt.Sprintf(f.line, name)+"\n"), mode, uid, gid); err != nil {
			return err
		}
	}
	return nil
}

// group adds the group of the number that the image's own account may lack.
func (c completion) group() error {
	at, data, info, err := c.read("etc/group")
	if errors.Is(err, fs.ErrNotExist) {
		at, err = "etc/group", nil
	}
	if err != nil {
		return err
	}
	text := string(data)
	if hasField(text, 2, fmt.Sprint(userID)) || hasField(text, 0, userName) {
		return nil
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	mode, uid, gid := fs.FileMode(0o644), 0, 0
	if info != nil {
		mode, uid, gid = info.Mode().Perm(), owner(info), group(info)
	}
	return c.replace(at, []byte(text+fmt.Sprintf("%s:x:%d:\n", userName, userID)), mode, uid, gid)
}

// hasField reports whether a line of text has value in a field of a list of accounts.
func hasField(text string, field int, value string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if parts := strings.Split(line, ":"); field < len(parts) && parts[field] == value {
			return true
		}
	}
	return false
}

func (c completion) has(name string) bool {
	at, err := resolve(c.root, path.Dir(name), func(string) error { return errMissing })
	if err != nil {
		return false
	}
	_, err = c.root.Lstat(path.Join(at, path.Base(name)))
	return err == nil
}

// read returns a file of the root and where it is, behind whatever links.
func (c completion) read(name string) (at string, data []byte, info fs.FileInfo, err error) {
	at = name
	for range maxLinks {
		dir, err := resolve(c.root, path.Dir(at), func(string) error { return errMissing })
		if err != nil {
			return at, nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		at = path.Join(dir, path.Base(at))
		if info, err = c.root.Lstat(at); err != nil {
			return at, nil, nil, err
		}
		if info.Mode().Type() == fs.ModeSymlink {
			target, err := c.root.Readlink(at)
			if err != nil {
				return at, nil, nil, err
			}
			if !strings.HasPrefix(target, "/") {
				target = dir + "/" + target
			}
			// Clean ends .. at the root; a link in the middle of it is resolved anew.
			if at = strings.TrimPrefix(path.Clean("/"+target), "/"); at == "" {
				return name, nil, nil, refused("its /%s is its root", name)
			}
			continue
		}
		if !info.Mode().IsRegular() || info.Size() > maxAccounts {
			return at, nil, nil, refused("its /%s is not a file, or has more than %d bytes", name, maxAccounts)
		}
		f, err := c.root.Open(at)
		if err != nil {
			return at, nil, nil, err
		}
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, maxAccounts))
		return at, data, info, err
	}
	return name, nil, nil, refused("its /%s leads through more than %d links", name, maxLinks)
}

// replace makes a new file under a name, in place of what is there.
func (c completion) replace(name string, data []byte, mode fs.FileMode, uid, gid int) error {
	if err := c.root.RemoveAll(name); err != nil {
		return err
	}
	f, err := c.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && c.own {
		err = f.Chown(uid, gid)
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// owner is the user that a file belongs to.
func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return 0
}

// group is the group that a file belongs to.
func group(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid)
	}
	return 0
}
